//! Median, quartiles and ratios.

/// What repetitions come to.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Summary {
    pub q1: f64,
    pub median: f64,
    pub q3: f64,
}

impl Summary {
    /// `None` without a value. All values must be finite.
    pub fn of(values: &[f64]) -> Option<Summary> {
        let mut sorted = values.to_vec();
        sorted.sort_by(f64::total_cmp);
        Some(Summary {
            q1: quantile(&sorted, 0.25)?,
            median: quantile(&sorted, 0.5)?,
            q3: quantile(&sorted, 0.75)?,
        })
    }

    /// How often `base` goes into `values`, repetition by repetition where both have equally many,
    /// else by their medians. `None` if one of them has no value, or if a divisor is zero.
    pub fn of_ratio(values: &[f64], base: &[f64]) -> Option<Summary> {
        if values.len() == base.len() {
            if base.contains(&0.0) {
                return None;
            }
            let ratios: Vec<f64> = values.iter().zip(base).map(|(a, b)| a / b).collect();
            return Summary::of(&ratios);
        }
        let (of, base) = (Summary::of(values)?.median, Summary::of(base)?.median);
        (base != 0.0).then(|| Summary {
            q1: of / base,
            median: of / base,
            q3: of / base,
        })
    }

    /// Whether the quartiles say something that the median does not.
    pub fn spreads(&self) -> bool {
        self.q1 != self.q3
    }
}

/// The value below which `share` of the sorted values lie, interpolated between its neighbours.
fn quantile(sorted: &[f64], share: f64) -> Option<f64> {
    let last = sorted.len().checked_sub(1)?;
    let at = share * last as f64;
    let (below, above) = (sorted[at.floor() as usize], sorted[at.ceil() as usize]);
    Some(below + (above - below) * at.fract())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn medians_and_quartiles() {
        for (values, q1, median, q3) in [
            (&[7.0][..], 7.0, 7.0, 7.0),
            (&[1.0, 2.0], 1.25, 1.5, 1.75),
            (&[3.0, 1.0, 2.0], 1.5, 2.0, 2.5),
            (&[4.0, 1.0, 3.0, 2.0], 1.75, 2.5, 3.25),
            (&[5.0, 4.0, 3.0, 2.0, 1.0], 2.0, 3.0, 4.0),
            (&[0.0, 0.0, 0.0, 100.0], 0.0, 0.0, 25.0),
        ] {
            let summary = Summary::of(values).unwrap();
            assert_eq!(summary, Summary { q1, median, q3 }, "{values:?}");
        }
        assert_eq!(Summary::of(&[]), None);
    }

    #[test]
    fn an_outlier_moves_no_median() {
        let summary = Summary::of(&[10.0, 11.0, 9.0, 10.0, 5000.0]).unwrap();
        assert_eq!(summary.median, 10.0);
    }

    #[test]
    fn equally_many_repetitions_are_paired() {
        // Both double in the second repetition: the ratio stays. The medians alone would say the
        // same, the quartiles would not.
        let ratio = Summary::of_ratio(&[30.0, 60.0, 30.0], &[10.0, 20.0, 10.0]).unwrap();
        assert_eq!((ratio.q1, ratio.median, ratio.q3), (3.0, 3.0, 3.0));
        let ratio = Summary::of_ratio(&[10.0, 30.0], &[10.0, 10.0]).unwrap();
        assert_eq!((ratio.q1, ratio.median, ratio.q3), (1.5, 2.0, 2.5));
    }

    #[test]
    fn unequally_many_are_compared_by_their_medians() {
        let ratio = Summary::of_ratio(&[10.0, 20.0, 90.0], &[5.0]).unwrap();
        assert_eq!(ratio.median, 4.0);
        assert!(!ratio.spreads());
    }

    #[test]
    fn nothing_is_divided_by_zero_or_nothing() {
        assert_eq!(Summary::of_ratio(&[1.0], &[0.0]), None);
        assert_eq!(Summary::of_ratio(&[1.0, 2.0], &[0.0]), None);
        assert_eq!(Summary::of_ratio(&[1.0], &[]), None);
        assert_eq!(Summary::of_ratio(&[], &[1.0]), None);
        assert_eq!(Summary::of_ratio(&[], &[]), None);
    }
}
