use super::*;

/// A machine in a folder of its own, which goes with it.
struct Fake(Machine);

impl Fake {
    /// One with a device that nothing keeps this process from.
    fn new(name: &str) -> Self {
        let root = std::env::temp_dir().join(format!("rpma-{name}-{}", std::process::id()));
        let fake = Fake(Machine { root });
        fake.write("sys/class/infiniband/rxe0/node_type", "1: CA\n");
        fake.write("sys/class/infiniband_verbs/abi_version", "6\n");
        fake.write("sys/class/infiniband_verbs/uverbs0/ibdev", "rxe0\n");
        fake.write("dev/infiniband/uverbs0", "");
        fake.write("dev/infiniband/rdma_cm", "");
        fake.write("etc/libibverbs.d/rxe.driver", "driver rxe\n");
        fake.write("proc/self/cgroup", "1:name=systemd:/old\n0::/pod/box\n");
        fake.write(
            "proc/self/mountinfo",
            "24 1 0:22 / /proc rw - proc proc rw\n30 1 0:26 / /cg rw,nosuid shared:4 - cgroup2 none rw\n",
        );
        fake.write("cg/pod/box/rdma.max", "rxe0 hca_handle=max hca_object=3\n");
        fake
    }

    fn write(&self, path: &str, text: &str) {
        let path = self.0.path(path);
        fs::create_dir_all(path.parent().unwrap()).unwrap();
        fs::write(path, text).unwrap();
    }

    fn remove(&self, path: &str) {
        fs::remove_file(self.0.path(path)).unwrap();
    }

    /// The reason, which must have all of `words`.
    fn assert_obstacle(&self, words: &[&str]) {
        let obstacle = self.0.device_obstacle().expect("nothing found");
        for word in words {
            assert!(obstacle.reason.contains(word), "{word}: {obstacle:?}");
        }
    }
}

impl Drop for Fake {
    fn drop(&mut self) {
        let _ = fs::remove_dir_all(&self.0.root);
    }
}

#[test]
fn a_device_that_can_be_used_has_no_obstacle() {
    let fake = Fake::new("fine");
    assert!(fake.0.device_obstacle().is_none());
    assert!(fake.0.connection_manager_obstacle().is_none());
}

#[test]
fn without_a_device_there_is_no_obstacle() {
    let fake = Fake::new("none");
    fs::remove_dir_all(fake.0.path("sys")).unwrap();
    fake.remove("dev/infiniband/uverbs0");
    fake.remove("dev/infiniband/rdma_cm");
    assert!(fake.0.device_obstacle().is_none());
    assert!(fake.0.connection_manager_obstacle().is_none());
}

#[test]
fn a_missing_node_is_named() {
    let fake = Fake::new("node");
    fake.remove("dev/infiniband/uverbs0");
    fake.assert_obstacle(&["dev/infiniband/uverbs0", "rxe0", "missing", "container"]);
    fake.remove("dev/infiniband/rdma_cm");
    let obstacle = fake.0.connection_manager_obstacle().unwrap();
    assert!(
        obstacle.reason.contains("dev/infiniband/rdma_cm"),
        "{obstacle:?}"
    );
}

#[test]
fn a_device_that_is_not_offered_to_programs_is_named() {
    let fake = Fake::new("offered");
    fs::remove_dir_all(fake.0.path("sys/class/infiniband_verbs")).unwrap();
    fake.assert_obstacle(&["rxe0", "ib_uverbs"]);
}

#[test]
fn a_missing_provider_is_named() {
    let fake = Fake::new("provider");
    fake.remove("etc/libibverbs.d/rxe.driver");
    fake.assert_obstacle(&["rxe0", "libibverbs.d", "ibverbs-providers"]);
}

#[test]
fn a_cgroup_without_handles_is_named() {
    let fake = Fake::new("cgroup");
    fake.write(
        "cg/pod/rdma.max",
        "siw0 hca_handle=0\nrxe0 hca_handle=2 hca_object=max\n",
    );
    assert!(fake.0.device_obstacle().is_none());
    fake.write("cg/pod/rdma.current", "rxe0 hca_handle=2 hca_object=9\n");
    fake.assert_obstacle(&["rxe0", "cgroup /pod ", "hca_handle"]);
    fake.write("cg/pod/box/rdma.max", "rxe0 hca_handle=0 hca_object=max\n");
    fake.assert_obstacle(&["cgroup /pod/box "]);
}
