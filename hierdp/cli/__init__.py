"""The command line, one file per command."""

from hierdp.cli.account import account
from hierdp.cli.analyze import analyze
from hierdp.cli.app import main as main
from hierdp.cli.audit import audit
from hierdp.cli.bench import bench
from hierdp.cli.check import check
from hierdp.cli.demo import demo
from hierdp.cli.evaluate import evaluate
from hierdp.cli.lists import mechanisms, solvers
from hierdp.cli.plan import plan
from hierdp.cli.query import query
from hierdp.cli.release import release
from hierdp.cli.repair import repair
from hierdp.cli.reproduce import reproduce
from hierdp.cli.verify import verify

for command in (
    *(demo, plan, release, repair, account, check, query, evaluate, analyze, verify, audit, bench, reproduce),
    *(solvers, mechanisms),
):
    main.add_command(command)
