-- Open codes: short names for what decided a case. Rows are appended; the newest of (trace, criterion, code) counts.
CREATE TABLE code (
    seq BIGINT NOT NULL,
    act BIGINT NOT NULL,                -- seq of the first row that was written by the same key: taken back together
    trace_id VARCHAR NOT NULL,
    trace_version INTEGER NOT NULL,
    criterion_id VARCHAR NOT NULL,
    code VARCHAR NOT NULL,
    present BOOLEAN NOT NULL,           -- false takes the code off the case
    expert VARCHAR NOT NULL,
    undoes BIGINT NOT NULL,             -- the act that this row takes back, 0 for none
    created_at TIMESTAMP NOT NULL
);

-- Axial codes: which failure mode a code belongs to. The newest row of (criterion, code) counts; a code without one is its own.
CREATE TABLE code_merge (
    seq BIGINT NOT NULL,
    act BIGINT NOT NULL,
    criterion_id VARCHAR NOT NULL,
    code VARCHAR NOT NULL,
    failure_mode VARCHAR NOT NULL,      -- '': the code stands for itself again
    expert VARCHAR NOT NULL,
    undoes BIGINT NOT NULL,
    created_at TIMESTAMP NOT NULL
);
