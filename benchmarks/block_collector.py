"""An observer of a run that keeps its blocks in memory."""

from dataclasses import dataclass, field

from pgperf.core.records import VariantBlock


@dataclass
class BlockCollector:
    """An Observer (see pgperf.runner.run) that collects the finished blocks."""

    blocks: list[VariantBlock] = field(default_factory=list)

    def block_done(self, blocks: list[VariantBlock]) -> None:
        self.blocks += blocks

    def progress(self, share: float, message: str) -> None:
        pass

    def cancelled(self) -> bool:
        return False
