"""Trials of planted mistakes, as scripts make them: several at a time, told as they end, counted with an interval."""
import concurrent.futures
import math
import threading
from collections.abc import Callable, Iterable


def run_all(trials: Iterable, work: Callable, tell: Callable, jobs: int, most: float = math.inf) -> list[dict]:
    """The records `work(job, trial)` of trials, as they come, up to `most`; None is no record. After each
    `tell(records)`, one call at a time. Stops at the first exception, which it raises."""
    records, lock, left = [], threading.Lock(), iter(trials)

    def next_trial():
        with lock:
            return next(left, None) if len(records) < most else None

    def job(number: int) -> None:
        nonlocal left
        while (trial := next_trial()) is not None:
            try:
                record = work(number, trial)
                with lock:
                    if record is not None and len(records) < most:
                        records.append(record)
                        tell(records)
            except BaseException:
                left = iter(())
                raise

    with concurrent.futures.ThreadPoolExecutor(jobs) as pool:
        for one in [pool.submit(job, number) for number in range(jobs)]:
            one.result()
    return records


def wilson(successes: int, trials: int) -> tuple[float, float]:
    """95 % score interval."""
    if trials == 0:
        return 0.0, 1.0
    z, p = 1.959963984540054, successes / trials
    middle = p + z * z / (2 * trials)
    half = z * math.sqrt(p * (1 - p) / trials + z * z / (4 * trials ** 2))
    low, high = (middle - half) / (1 + z * z / trials), (middle + half) / (1 + z * z / trials)
    return max(0.0, low), min(1.0, high)


def share(successes: int, trials: int) -> str:
    low, high = wilson(successes, trials)
    return f"{successes} of {trials} (95 %: {100 * low:.1f} to {100 * high:.1f} %)"
