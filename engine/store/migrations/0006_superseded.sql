-- Versions of traces that a newer one has replaced; few, so that "the newest of each" needs no look at all versions.
CREATE TABLE superseded (
    trace_id VARCHAR NOT NULL,
    version INTEGER NOT NULL
);

INSERT INTO superseded
SELECT trace_id, version FROM trace QUALIFY version < max(version) OVER (PARTITION BY trace_id);
