"""The ledger's tables, as the steps that made them. A step is never edited once released; a change is a new step."""

APPLICATION_ID = 0x76666C74  # "vflt": tells our file from any other SQLite file

STEPS: tuple[str, ...] = (
    """
    CREATE TABLE facts (name TEXT PRIMARY KEY, value TEXT NOT NULL) STRICT, WITHOUT ROWID;
    CREATE TABLE instances (
        nonce TEXT PRIMARY KEY, fleet TEXT NOT NULL, label TEXT NOT NULL, shape TEXT NOT NULL, gpu TEXT NOT NULL,
        gpu_count INTEGER NOT NULL, machine_id INTEGER NOT NULL, price INTEGER NOT NULL, disk_gib REAL NOT NULL,
        workload TEXT NOT NULL, phase TEXT NOT NULL, phase_since REAL NOT NULL, reason TEXT NOT NULL,
        detail TEXT NOT NULL,
        created_at REAL NOT NULL, offer_id INTEGER, host_id INTEGER, country TEXT, instance_id INTEGER UNIQUE,
        launched_at REAL, prepared_at REAL, admitted_at REAL, checked_at REAL, ends_at REAL, absent_since REAL,
        trouble_since REAL, failures INTEGER NOT NULL, not_before REAL NOT NULL, host_key TEXT,
        destroy_calls INTEGER NOT NULL, cost INTEGER NOT NULL, cost_until REAL, ended_at REAL
    ) STRICT, WITHOUT ROWID;
    CREATE INDEX instances_alive ON instances (fleet) WHERE phase <> 'Gone';
    CREATE TABLE runs (
        id TEXT PRIMARY KEY, nonce TEXT NOT NULL, fleet TEXT NOT NULL, machine_id INTEGER NOT NULL, shape TEXT NOT NULL,
        workload TEXT NOT NULL, started_at REAL NOT NULL, ended_at REAL NOT NULL, reason TEXT NOT NULL,
        detail TEXT NOT NULL, rate REAL, unit TEXT NOT NULL, error REAL, concurrency INTEGER, count INTEGER,
        ram_gib REAL, cpu_cores INTEGER, gpu_uuid TEXT NOT NULL, disturbed INTEGER NOT NULL
    ) STRICT, WITHOUT ROWID;
    CREATE INDEX runs_of_machine ON runs (machine_id, shape, ended_at);
    CREATE TABLE backoffs (
        scope TEXT NOT NULL, key TEXT NOT NULL, until REAL NOT NULL, failures INTEGER NOT NULL, reason TEXT NOT NULL,
        detail TEXT NOT NULL, PRIMARY KEY (scope, key)
    ) STRICT, WITHOUT ROWID;
    CREATE TABLE events (
        number INTEGER PRIMARY KEY, at REAL NOT NULL, fleet TEXT NOT NULL, about TEXT NOT NULL, kind TEXT NOT NULL,
        reason TEXT NOT NULL, message TEXT NOT NULL
    ) STRICT;
    CREATE TABLE fleets (
        name TEXT PRIMARY KEY, deleting INTEGER NOT NULL DEFAULT 0, status TEXT NOT NULL
    ) STRICT, WITHOUT ROWID;
    """,
    """
    ALTER TABLE instances ADD COLUMN gpu_fraction REAL;
    ALTER TABLE instances ADD COLUMN read_at REAL;
    ALTER TABLE instances ADD COLUMN read_fault TEXT NOT NULL DEFAULT '';
    ALTER TABLE runs ADD COLUMN kind TEXT NOT NULL DEFAULT 'Benchmark';
    ALTER TABLE runs ADD COLUMN gpu_fraction REAL;
    ALTER TABLE runs ADD COLUMN neighbours INTEGER NOT NULL DEFAULT 0;
    ALTER TABLE runs ADD COLUMN power_limit_w REAL;
    ALTER TABLE runs ADD COLUMN power_default_w REAL;
    ALTER TABLE runs ADD COLUMN throttled TEXT NOT NULL DEFAULT '';
    ALTER TABLE runs ADD COLUMN temperature_c REAL;
    ALTER TABLE runs ADD COLUMN cpu_throttled REAL;
    ALTER TABLE runs ADD COLUMN driver TEXT NOT NULL DEFAULT '';
    ALTER TABLE runs ADD COLUMN image TEXT NOT NULL DEFAULT '';
    """,
)
