"""The one table of reasons: every condition, event, action and fault names one of these.

`vastfleet explain REASON` prints a row of it. Read by every room.
"""

from enum import StrEnum


class Reason(StrEnum):
    """Why something is so, in one CamelCase word, as Kubernetes conditions spell it."""

    # the fleet
    TARGET_REACHED = "TargetReached"
    FILLING = "Filling"
    REPLACING = "Replacing"
    TEARING_DOWN = "TearingDown"
    SUSPENDED = "Suspended"
    UNMANAGED = "Unmanaged"
    DEGRADED = "Degraded"
    INTERNAL_ERROR = "InternalError"
    DELETED = "Deleted"
    WITHIN_BUDGET = "WithinBudget"
    BUDGET_EXHAUSTED = "BudgetExhausted"
    OFFERS_FOUND = "OffersFound"
    NOT_SEARCHED = "NotSearched"
    NO_MATCHING_OFFER = "NoMatchingOffer"
    CREDIT_OK = "CreditOk"
    CREDIT_EXHAUSTED = "CreditExhausted"
    PROGRESSING_WITH_RETRY = "ProgressingWithRetry"
    # vast.ai's answers
    LISTING_FAILED = "ListingFailed"
    LISTING_INCOMPLETE = "ListingIncomplete"
    ENDPOINT_RETIRED = "EndpointRetired"
    RATE_LIMITED = "RateLimited"
    QUOTA_EXCEEDED = "QuotaExceeded"
    AUTH_FAILED = "AuthFailed"
    BAD_REQUEST = "BadRequest"
    BAD_ANSWER = "BadAnswer"
    UNREACHABLE = "Unreachable"
    SERVER_ERROR = "ServerError"
    SPEND_LIMITED = "SpendLimited"
    GPU_TAKEN = "GpuTaken"
    LEDGER_UNUSABLE = "LedgerUnusable"
    ACCOUNT_CHANGED = "AccountChanged"
    ENV_UNRESOLVED = "EnvUnresolved"
    # the cluster
    CLUSTER_UNAVAILABLE = "ClusterUnavailable"
    CLUSTER_REFUSED = "ClusterRefused"
    NOT_LEADING = "NotLeading"
    INVALID_SPEC = "InvalidSpec"
    OBJECT_DELETED = "ObjectDeleted"
    # renting
    OFFER_GONE = "OfferGone"
    CREATE_UNCLEAR = "CreateUnclear"
    CREATE_UNCONFIRMED = "CreateUnconfirmed"
    PRICE_MISMATCH = "PriceMismatch"
    MACHINE_MISMATCH = "MachineMismatch"
    RENTED = "Rented"
    ADOPTED = "Adopted"
    # an instance coming up
    LAUNCH_TIMEOUT = "LaunchTimeout"
    IMAGE_FAULT = "ImageFault"
    HOST_FAULT = "HostFault"
    CONNECTING = "Connecting"
    SSH_UNREACHABLE = "SshUnreachable"
    SSH_REFUSED = "SshRefused"
    HOST_KEY_CHANGED = "HostKeyChanged"
    CONNECTION_LOST = "ConnectionLost"
    PREPARING = "Preparing"
    PREPARED = "Prepared"
    PREPARE_FAILED = "PrepareFailed"
    PREPARE_STALLED = "PrepareStalled"
    PREPARE_TIMEOUT = "PrepareTimeout"
    BENCHMARKING = "Benchmarking"
    BENCHMARK_FAILED = "BenchmarkFailed"
    BENCHMARK_STALLED = "BenchmarkStalled"
    BENCHMARK_TIMEOUT = "BenchmarkTimeout"
    NO_RATE = "NoRate"
    OUT_OF_MEMORY = "OutOfMemory"
    START_FAILED = "StartFailed"
    # judging it
    MEASURED = "Measured"
    MEETS_MIN_RATE = "MeetsMinRate"
    INCONCLUSIVE = "Inconclusive"
    BELOW_MIN_RATE = "BelowMinRate"
    RECHECK_DUE = "RecheckDue"
    WORKLOAD_SUSPECT = "WorkloadSuspect"
    FLEET_SHIFT = "FleetShift"
    FLOOR_OUT_OF_REACH = "FloorOutOfReach"
    # losing it
    PRICE_INCREASED = "PriceIncreased"
    OUTBID = "Outbid"
    STOPPED_OUTSIDE = "StoppedOutside"
    RESUMED = "Resumed"
    HOST_LOST = "HostLost"
    CONTRACT_ENDING = "ContractEnding"
    VANISHED = "Vanished"
    MISSING = "Missing"
    SURPLUS = "Surplus"
    OUTDATED = "Outdated"
    OVER_BUDGET = "OverBudget"
    RESURRECTED = "Resurrected"
    STRAY = "Stray"
    RELABELLED = "Relabelled"
    TEARDOWN_VERIFIED = "TeardownVerified"
    # why an offer was not taken
    NOT_RENTABLE = "NotRentable"
    WRONG_GPU = "WrongGpu"
    REGION = "Region"
    RELIABILITY = "Reliability"
    UNVERIFIED = "Unverified"
    MEMORY = "Memory"
    DISK = "Disk"
    CUDA = "Cuda"
    NETWORK = "Network"
    PARTIAL_MACHINE = "PartialMachine"
    REMAINING_TIME = "RemainingTime"
    PRICE = "Price"
    AVOIDED = "Avoided"
    BACKING_OFF = "BackingOff"
    KNOWN_SLOW = "KnownSlow"


def _read(table: str) -> dict[Reason, str]:
    """Rows of `Word: text`, which may go on in indented lines."""
    rows = (row.partition(": ") for row in table.replace("\n  ", " ").strip().splitlines())
    return {Reason(word): text for word, _, text in rows}


EXPLANATIONS: dict[Reason, str] = _read("""
TargetReached: The fleet holds what its target asks for. Nothing to do.
Filling: Fewer instances work than the target asks for; more are being rented or made ready. Wait.
Replacing: An instance that is too slow, lost or ending is being replaced. Wait.
TearingDown: Instances are being destroyed and are not yet proven gone; until then they may bill. Wait.
InternalError: The controller made a mistake of its own and tries again. Its log has the traceback: please report it.
Degraded: An instance that worked is not running. Hosts flicker, so it is borne with for a while, then replaced.
Unmanaged: The fleet's manifest is not loaded here. What it runs bills and is left alone: apply it, or destroy it.
Suspended: The manifest says suspend: true, so nothing is rented or replaced; what runs goes on billing. Take it out
  to resume.
Deleted: The fleet is being deleted, and its instances with it. Wait until it is gone.
WithinBudget: All that bills or may bill fits the budget. Nothing to do.
BudgetExhausted: Nothing more that would help fits the budget. Raise budgetPerHour, or lower the target, if you want
  more.
NotSearched: Nothing had to be rented yet, so the market was not looked at. Nothing to do.
OffersFound: The market has offers that meet every condition. Nothing to do.
NoMatchingOffer: No offer meets every condition. See which condition turns most away, relax it, or wait for the
  market.
CreditOk: The account's credit lasts. Nothing to do.
CreditExhausted: The account has too little credit to rent more, and what runs may soon be stopped. Add credit on
  vast.ai.
ProgressingWithRetry: Something failed that usually heals by itself and is tried again. Look again if it does not
  pass.
ListingFailed: vast.ai gave no usable list of instances, so nothing is rented and nothing counts as gone. It is
  tried again.
ListingIncomplete: Part of the list of instances was missing or unreadable, so nothing counts as gone. It is tried
  again.
EndpointRetired: vast.ai has switched off a call that is needed here. Update vastfleet; until then nothing new is
  rented.
RateLimited: vast.ai asked for fewer requests. They are slowed down and tried again; use fewer programs on one
  account.
QuotaExceeded: The day's searches of the market are used up. Renting goes on when the quota resets, at midnight UTC.
AuthFailed: vast.ai does not accept the API key, or the key lacks a permission. Check VAST_API_KEY.
BadRequest: vast.ai says that the request itself is wrong. Read the message, and mend the manifest field that it
  names.
BadAnswer: vast.ai's answer could not be understood, so it is not relied on. It is tried again; report it if it
  stays.
Unreachable: vast.ai could not be reached. It is tried again; check the network and VAST_URL if it stays.
ServerError: vast.ai failed to answer a request. It is tried again.
SpendLimited: vast.ai limits how fast this account may spend. Renting waits a good while; ask vast.ai to raise the
  limit.
GpuTaken: The GPU of a stopped instance is rented to somebody else, so it cannot start now. Another is rented
  instead.
LedgerUnusable: The ledger is missing, locked, damaged or of a newer version, and is never replaced. Do what the
  message says.
AccountChanged: The API key is of another account than the one in the ledger. Use the old key, or another ledger.
EnvUnresolved: A variable or file that envFrom names is missing or unfit. Set it where vastfleet runs, or mend
  envFrom.
ClusterUnavailable: The Kubernetes API server could not be reached or failed to answer. Nothing is rented that cannot be
  written down; it is tried again.
ClusterRefused: The Kubernetes API server refused what was to be written. Read the message; if it speaks of permission,
  apply the RBAC rules of deploy/ again.
NotLeading: Another replica of the operator leads, or this one lost its lease: it rents and destroys nothing.
InvalidSpec: The Fleet's spec passed the cluster's schema and is wrong all the same. Mend what the message names; until
  then the last good spec is held.
ObjectDeleted: The Instance object was deleted, so its instance is destroyed, and replaced if the target needs it.
OfferGone: Somebody else took the offer, or it was withdrawn. The next one is tried.
CreateUnclear: The answer to a rental was lost, so it may exist; it counts against the budget until its label tells.
  Wait.
CreateUnconfirmed: A rental whose answer was lost never showed up, so it was not made. Another offer is tried.
PriceMismatch: The instance costs more than its offer said. It is given up if it breaks a cap.
MachineMismatch: The instance came up on another machine than was rented. It is given up.
Rented: An instance was rented, and bills from now. Nothing to do.
Adopted: An instance of ours that the ledger did not know was found running, and is taken on. Nothing to do.
LaunchTimeout: The container was not running in time. It is given up, and the machine is left alone for a while.
ImageFault: The image cannot be pulled or started on any machine. Check spec.instance.image and whether it is
  public.
HostFault: The machine cannot run the container. It is given up, and the machine is left alone for a while.
Connecting: The container runs and is being reached over SSH. Wait.
SshUnreachable: The instance's SSH server could not be reached, directly or by proxy. It is tried again, then given
  up.
SshRefused: The instance's SSH server does not accept our key. The key is attached again; then the instance is given
  up.
HostKeyChanged: The instance shows another SSH host key than before, so nothing is sent to it. It is given up.
ConnectionLost: The SSH connection broke during the work. It is tried again.
Preparing: The prepare command is running. Wait.
Prepared: The instance is prepared and can be measured. Nothing to do.
PrepareFailed: The prepare command failed. It is tried again; if every machine shows this, mend the command.
PrepareStalled: The prepare command printed nothing new for too long and was stopped. It is tried again.
PrepareTimeout: The prepare command took too long and was stopped. Raise prepare.timeoutMinutes if it needs longer.
Benchmarking: The benchmark is running. Wait.
BenchmarkFailed: The benchmark command failed. It is tried again; if every machine shows this, mend the command.
BenchmarkStalled: The benchmark stopped getting on before its end and was stopped. It is tried again.
BenchmarkTimeout: The benchmark took too long and was stopped. Raise benchmark.timeoutMinutes if it needs longer.
NoRate: The benchmark ended and its log holds no rate. Check benchmark.format, pattern and unit against what it
  prints.
OutOfMemory: The benchmark needs more memory than the instance has. Raise require.ramGiB, or mend benchmark.memory.
StartFailed: The start or stop command of production failed. It is tried again; if every machine shows this, mend
  it.
Measured: The benchmark gave a rate. Nothing to do.
MeetsMinRate: The rates measured say that the instance is fast enough. Nothing to do.
Inconclusive: The rates measured do not yet tell whether the instance is fast enough. It works, and is measured
  again soon.
BelowMinRate: The rates measured say that the instance is slower than minRate. It is replaced, budget permitting.
WorkloadSuspect: Several machines fail in the same way, so the image or a command is suspected, not they. Nothing is
  replaced for it and new ones are tried one at a time. Mend the manifest.
FleetShift: Most machines became slower at once, so what they share is suspected, not they. Nothing is replaced for it.
  Find what changed, or lower minRate if the new rate is to be lived with.
FloorOutOfReach: Of the machines measured, next to none is as fast as minRate. No more are tried. Lower minRate, or
  ask for another shape.
RecheckDue: The last rate is old, so the instance is measured again. Nothing to do.
PriceIncreased: The instance costs more than before. It is kept while it fits the budget.
Outbid: Somebody bid more for the GPU, and the instance stopped; its disk still bills. It is given up.
StoppedOutside: Somebody or vast.ai stopped the instance, and it did not start again. Its disk bills: it is given up.
Resumed: The instance had been stopped and was started again. If it does not run soon after, it is replaced.
HostLost: The machine has been out of contact for too long. The instance is given up and replaced.
ContractEnding: The machine's owner ends the rental soon. The instance is replaced in time.
Vanished: The instance is in no complete listing and unknown by its id: it is gone. It is replaced if the target
  needs it.
Missing: Something that should exist is not there, though it is not proven gone. It still counts; it is looked for
  again.
Surplus: The target needs fewer instances. This one is released.
Outdated: What should run on the instance has changed in the manifest. It is replaced in its turn.
OverBudget: All that bills together exceeds the budget, so this instance is released. Raise budgetPerHour to keep as
  many.
Resurrected: An instance that was destroyed is listed again. It counts against the budget, and is destroyed again.
Stray: An instance carries our label without a rental of its own in the ledger. A second one under one label is
  destroyed; one of a fleet that is not loaded here is left alone and bills: load its manifest, or destroy it on
  vast.ai.
Relabelled: The instance no longer carries our label, so it is not ours to touch. Destroy it on vast.ai if you want
  it gone.
TeardownVerified: The instance was absent from two complete listings apart in time, so it is gone. Nothing to do.
NotRentable: The offer cannot be rented now. Others are looked at.
WrongGpu: The offer has another GPU model or count than the shape. Others are looked at.
Region: The offer is elsewhere, or does not say where. Add to spec.regions to allow it.
Reliability: The machine is less reliable than asked. Lower require.reliability to allow it.
Unverified: vast.ai has not verified the machine. Set require.verified: false to allow it.
Memory: The offer has less memory than asked, or one piece of work ran out of as much before. Lower require.ramGiB if it
  asks for too much; where work ran out, raise it, or let the work need less.
Disk: The machine has less free disk than asked. Lower require.diskGiB to allow it.
Cuda: The machine's driver is too old for the CUDA version asked. Lower require.cuda to allow it.
Network: The machine's download is slower than asked. Lower require.downMbps to allow it.
PartialMachine: The offer is a part of a machine, and only whole ones will do. Set require.wholeMachine: false to
  allow it.
RemainingTime: The offer ends too soon. Lower require.remainingHours to allow it.
Price: The offer costs more than its shape's cap, with the disk. Raise maxPricePerHour to allow it.
Avoided: The manifest's machines.avoid names the machine: nothing is rented there, and what runs there is replaced. Take
  the entry out to allow it.
BackingOff: Something failed there lately, so it is left alone for a while. Wait.
KnownSlow: The machine was measured and found too slow. It is left alone until that is too old to believe, in weeks.
""")
"""What each reason means, and what, if anything, the user should do."""
