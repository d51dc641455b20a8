"""Noise of slices as it was measured on a shared machine: consecutive slices share much of it.

The logarithm of a processor's speed is the sum of processes whose correlation falls exponentially.
It follows 833 slices of 50 ms of `orm-overhead`, whose correlation was 0.69 after 70 ms, 0.57 after
0.15 s, 0.43 after 0.36 s and 0.19 after 1.2 s. Client and server run on processors of their own.
"""

from dataclasses import dataclass

import numpy as np

#: Shares of the variance of a 50 ms slice, with their time constants in s.
KERNEL = ((0.6, 1.1), (0.2, 0.1), (0.2, 0.005))
_REFERENCE_S = 0.05
#: Correlation of the client's and the server's processor in one slice.
_PROCESSORS = 0.4


@dataclass(frozen=True)
class Slots:
    """The times of `count` slices of a block, of which `window_s` of `slot_s` are recorded."""

    count: int
    slot_s: float
    window_s: float

    def correlations(self) -> np.ndarray:
        """Between all slices, in units of the variance of a slice of 50 ms."""
        lags = np.abs(np.subtract.outer(np.arange(self.count), np.arange(self.count))) * self.slot_s
        return np.sum(
            [
                share / _variance(_REFERENCE_S / constant) * _averaged(lags, self.window_s, constant)
                for share, constant in KERNEL
            ],
            axis=0,
        )

    def processors(self, rng: np.random.Generator, blocks: int) -> tuple[np.ndarray, np.ndarray]:
        """The noise of the client's and of the server's processor: one row per block, variance 1."""
        root = np.linalg.cholesky(self.correlations())
        client, own = rng.normal(size=(2, blocks, self.count)) @ root.T
        return client, _PROCESSORS * client + np.sqrt(1 - _PROCESSORS**2) * own


def _variance(windows: float) -> float:
    """Of the mean over a window of so many time constants of a process of variance 1."""
    return float(2 * (windows - 1 + np.exp(-windows)) / windows**2)


def _averaged(lags: np.ndarray, window_s: float, constant: float) -> np.ndarray:
    """The covariance of two windows' means, which do not overlap unless they are the same."""
    windows = window_s / constant
    apart = np.exp(-np.maximum(lags - window_s, 0) / constant) * ((1 - np.exp(-windows)) / windows) ** 2
    return np.where(lags == 0, _variance(windows), apart)
