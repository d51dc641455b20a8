from pgperf.analysis import cpu_per_operation
from pgperf.analysis.cpu_account import CpuPerOperation
from pgperf.core.records import SliceRecord, VariantBlock

from .synthetic import piece, variant


def block(*slices: SliceRecord) -> list[VariantBlock]:
    return [
        VariantBlock(variant=variant(), cohort=0, block=number, slices=(one,))
        for number, one in enumerate(slices)
    ]


def test_time_is_spread_over_all_operations_lead_in_included() -> None:
    slices = [
        piece(100, 0, ops=900, lead_in_ops=100, user_ns=20_000_000, sys_ns=5_000_000, server_ns=30_000_000),
        piece(100, 1, ops=950, lead_in_ops=50, user_ns=40_000_000, sys_ns=5_000_000, server_ns=50_000_000),
    ]
    assert cpu_per_operation.per_op_us(block(*slices)) == CpuPerOperation(
        client_user=30.0, client_sys=5.0, server=40.0
    )


def test_slices_without_figures_of_a_role_are_left_out_of_its_mean() -> None:
    slices = [piece(100, 0, ops=950, server_ns=30_000_000), piece(100, 1, ops=950, server_ns=None)]
    assert cpu_per_operation.per_op_us(block(*slices)).server == 30.0


def test_zero_is_a_value_and_none_is_unknown() -> None:
    assert cpu_per_operation.per_op_us(block(piece(100, 0, pooler_ns=0))).pooler == 0.0
    assert cpu_per_operation.per_op_us([]) == CpuPerOperation(proxy=None, web=None)
    assert cpu_per_operation.per_op_us(block(piece(100, 0, ops=0, lead_in_ops=0))).client_user is None
