"""The command line, a file a command."""

from hierdp.cli.account import account
from hierdp.cli.analyze import analyze
from hierdp.cli.app import main as main
from hierdp.cli.audit import audit
from hierdp.cli.bench import bench
from hierdp.cli.check import check
from hierdp.cli.demo import demo
from hierdp.cli.lists import mechanisms, solvers
from hierdp.cli.query import query
from hierdp.cli.release import release
from hierdp.cli.release_clustering import clustering
from hierdp.cli.release_count_of_counts import count_of_counts
from hierdp.cli.release_group_size import group_size
from hierdp.cli.release_range_query import range_query
from hierdp.cli.release_top_down import top_down
from hierdp.cli.reproduce import reproduce
from hierdp.cli.verify import verify

for mechanism in (group_size, count_of_counts, top_down, range_query, clustering):
    release.add_command(mechanism)
for command in (
    *(demo, release, account, check, query, analyze, verify, audit, bench, reproduce),
    *(solvers, mechanisms),
):
    main.add_command(command)
