//! Remote memory over RDMA.
