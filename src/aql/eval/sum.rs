//! Exact sums: the same whatever the order of the numbers, rounded once.

/// A sum of numbers. The exact value is that of all parts together, which do not overlap (J. R. Shewchuk, 1997).
#[derive(Default)]
pub(super) struct Sum {
    high: f64,
    /// What `high` has lost, the smallest first.
    low: Vec<f64>,
}

impl Sum {
    /// Adds a number.
    pub fn add(&mut self, number: f64) {
        let (high, lost) = two_sum(self.high, number);
        self.high = high;
        if lost != 0.0 && high.is_finite() {
            grow(&mut self.low, lost);
        }
    }

    /// The sum, rounded to the nearest number.
    pub fn value(&self) -> f64 {
        if !self.high.is_finite() {
            return self.high;
        }
        let mut parts = self.low.clone();
        grow(&mut parts, self.high);
        let mut total = parts.pop().unwrap_or(0.0);
        while let Some(part) = parts.pop() {
            let (sum, lost) = two_sum(total, part);
            total = sum;
            if lost != 0.0 {
                return halfway(total, lost, parts.last().copied());
            }
        }
        total
    }
}

/// Rounds a tie by what lies below it.
fn halfway(total: f64, lost: f64, below: Option<f64>) -> f64 {
    let away = below.is_some_and(|below| below != 0.0 && (below < 0.0) == (lost < 0.0));
    let other = total + 2.0 * lost;
    if away && other - total == 2.0 * lost { other } else { total }
}

/// Adds a number to parts that do not overlap.
fn grow(parts: &mut Vec<f64>, number: f64) {
    let mut rest = number;
    parts.retain_mut(|part| {
        let (sum, lost) = two_sum(rest, *part);
        rest = sum;
        *part = lost;
        lost != 0.0
    });
    parts.push(rest);
}

/// The rounded sum of two numbers, and what rounding lost.
fn two_sum(a: f64, b: f64) -> (f64, f64) {
    let sum = a + b;
    let from_b = sum - a;
    (sum, (a - (sum - from_b)) + (b - from_b))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn sum(numbers: &[f64]) -> f64 {
        let mut sum = Sum::default();
        numbers.iter().for_each(|n| sum.add(*n));
        sum.value()
    }

    #[test]
    fn the_order_does_not_matter() {
        assert_eq!((sum(&[1e16, 1.0, -1e16]), sum(&[1.0, 1e16, -1e16]), sum(&[])), (1.0, 1.0, 0.0));
        assert_eq!(sum(&[0.1; 10]), 1.0);
        let (half, bit) = (f64::EPSILON / 2.0, f64::EPSILON * f64::EPSILON);
        assert_eq!((sum(&[1.0, half]), sum(&[1.0, half, bit]), sum(&[bit, half, 1.0])), (1.0, 1.0 + f64::EPSILON, 1.0 + f64::EPSILON));
    }
}
