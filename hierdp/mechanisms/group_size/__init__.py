"""Group sizes over a hierarchy: the mechanisms of Fioretto & Van Hentenryck 2019."""

from hierdp.mechanisms.group_size.mechanism import from_table, group_size, m_c_dp, measure, noisy_of
from hierdp.mechanisms.group_size.repairs import post_process

__all__ = ["from_table", "group_size", "m_c_dp", "measure", "noisy_of", "post_process"]
