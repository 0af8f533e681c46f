"""A process that writes instances until it is killed. It prints each number once its write has returned."""

import sys
from pathlib import Path

from controller.ledger.sqlite import Ledger
from tests.plan.conftest import instance

ledger = Ledger.open(Path(sys.argv[1]))
number = 0
while True:
    number += 1
    ledger.put(instance(number))
    sys.stdout.write(f"{number}\n")
    sys.stdout.flush()
