-- Events (labels, piles, seal events, judgements) are only ever appended; the latest by seq counts.
CREATE SEQUENCE event_seq;

CREATE TABLE workspace (name VARCHAR NOT NULL, value VARCHAR NOT NULL);

CREATE TABLE source (
    source_id VARCHAR NOT NULL,         -- content hash of the file with its mapping
    path VARCHAR NOT NULL,
    kind VARCHAR NOT NULL,              -- traces, labels
    format VARCHAR NOT NULL,
    mapping JSON NOT NULL,
    accepted BIGINT NOT NULL,
    refused BIGINT NOT NULL,
    imported_at TIMESTAMP NOT NULL
);

CREATE TABLE trace (
    trace_id VARCHAR NOT NULL,
    version INTEGER NOT NULL,           -- a regenerated answer is a new version
    position BIGINT NOT NULL,           -- order of arrival, from 0
    source_id VARCHAR NOT NULL,
    source_row BIGINT NOT NULL,
    origin VARCHAR NOT NULL,            -- real, written
    request VARCHAR NOT NULL,
    context JSON NOT NULL,
    facts JSON NOT NULL,
    response VARCHAR NOT NULL,
    metadata JSON NOT NULL,
    group_key VARCHAR NOT NULL,         -- normalised request: a group stays in one pile
    content_hash VARCHAR NOT NULL,
    imported_at TIMESTAMP NOT NULL
);

CREATE TABLE criterion (
    criterion_id VARCHAR NOT NULL,
    version INTEGER NOT NULL,
    question VARCHAR NOT NULL,
    task VARCHAR NOT NULL,
    pass_when VARCHAR NOT NULL,
    fail_when VARCHAR NOT NULL,
    edge_cases JSON NOT NULL,           -- list of texts, each with its why
    quote_required BOOLEAN NOT NULL,
    facts JSON NOT NULL,                -- names of the facts that the criterion depends on
    help_critiques JSON NOT NULL,       -- model critiques shown as help: [{verdict, critique}]
    author VARCHAR NOT NULL,
    created_at TIMESTAMP NOT NULL
);

CREATE TABLE label (
    seq BIGINT NOT NULL,
    trace_id VARCHAR NOT NULL,
    trace_version INTEGER NOT NULL,
    criterion_id VARCHAR NOT NULL,
    criterion_version INTEGER NOT NULL,
    mark VARCHAR NOT NULL,              -- PASS, FAIL, NOT_APPLICABLE, DEFECT, DEFERRED, WITHDRAWN
    critique VARCHAR NOT NULL,
    expert VARCHAR NOT NULL,
    how_drawn VARCHAR NOT NULL,         -- random, by_cell, by_judge, by_verdict, hand
    judge_visible BOOLEAN NOT NULL,
    seconds DOUBLE,                     -- reading and writing, where it was given here
    source_id VARCHAR NOT NULL,         -- '' for a label given here
    source_row BIGINT NOT NULL,
    undoes BIGINT NOT NULL,             -- seq of the label that this row takes back, 0 for none
    created_at TIMESTAMP NOT NULL
);

-- What is typed but not saved: the one table of the desk that is overwritten.
CREATE TABLE draft (
    trace_id VARCHAR NOT NULL,
    criterion_id VARCHAR NOT NULL,
    verdict VARCHAR NOT NULL,
    critique VARCHAR NOT NULL,
    updated_at TIMESTAMP NOT NULL
);

CREATE TABLE pile (
    seq BIGINT NOT NULL,
    trace_id VARCHAR NOT NULL,
    criterion_id VARCHAR NOT NULL,
    pile VARCHAR NOT NULL,              -- build, sealed, none
    how VARCHAR NOT NULL,               -- drawn, hand
    created_at TIMESTAMP NOT NULL
);

CREATE TABLE seal_event (
    seq BIGINT NOT NULL,
    criterion_id VARCHAR NOT NULL,
    kind VARCHAR NOT NULL,              -- drawn, added, measured, read
    trace_id VARCHAR NOT NULL,          -- '' when the event is about the whole pile
    run_id VARCHAR NOT NULL,
    detail VARCHAR NOT NULL,
    created_at TIMESTAMP NOT NULL
);

CREATE TABLE model (
    model_id VARCHAR NOT NULL,          -- fingerprint
    name VARCHAR NOT NULL,
    backend VARCHAR NOT NULL,
    path VARCHAR NOT NULL,
    details JSON NOT NULL,
    created_at TIMESTAMP NOT NULL
);

CREATE TABLE judge (
    judge_id VARCHAR NOT NULL,          -- content hash of everything below but parent, change and number
    criterion_id VARCHAR NOT NULL,
    criterion_version INTEGER NOT NULL,
    number INTEGER NOT NULL,            -- v1, v2 ... within the criterion
    parent_id VARCHAR NOT NULL,
    change VARCHAR NOT NULL,            -- the one stated change against the parent
    task VARCHAR NOT NULL,
    criterion_text VARCHAR NOT NULL,
    examples JSON NOT NULL,             -- [{trace_id, label_seq, verdict, critique, case}]
    output VARCHAR NOT NULL,
    quote_required BOOLEAN NOT NULL,
    model_id VARCHAR NOT NULL,
    sampling JSON NOT NULL,
    reason_chars INTEGER NOT NULL,
    created_at TIMESTAMP NOT NULL
);

CREATE TABLE run (
    run_id VARCHAR NOT NULL,
    kind VARCHAR NOT NULL,              -- judge
    title VARCHAR NOT NULL,
    criterion_id VARCHAR NOT NULL,
    judge_id VARCHAR NOT NULL,
    model_id VARCHAR NOT NULL,
    device VARCHAR NOT NULL,
    status VARCHAR NOT NULL,            -- as in state.json, and waiting: its keys are pending in another run
    needed BIGINT NOT NULL,
    cached BIGINT NOT NULL,             -- had a completion when the run was planned
    awaited BIGINT NOT NULL,            -- pending in another run when this one was planned
    spool_offset BIGINT NOT NULL,
    refused_lines BIGINT NOT NULL,
    created_at TIMESTAMP NOT NULL,
    finished_at TIMESTAMP
);

-- What a run is about: the case behind each request key.
CREATE TABLE run_case (
    run_id VARCHAR NOT NULL,
    trace_id VARCHAR NOT NULL,
    trace_version INTEGER NOT NULL,
    request_key VARCHAR NOT NULL,
    position BIGINT NOT NULL
);

-- Which run has a key in its plan file, and so generates it.
CREATE TABLE run_request (
    run_id VARCHAR NOT NULL,
    request_key VARCHAR NOT NULL
);

CREATE TABLE completion (
    request_key VARCHAR NOT NULL,
    run_id VARCHAR NOT NULL,
    text VARCHAR NOT NULL,
    finish VARCHAR NOT NULL,
    prompt_tokens BIGINT NOT NULL,
    cached_tokens BIGINT NOT NULL,
    completion_tokens BIGINT NOT NULL,
    seconds DOUBLE NOT NULL,
    error VARCHAR NOT NULL,
    backend VARCHAR NOT NULL,
    backend_version VARCHAR NOT NULL,
    created_at TIMESTAMP NOT NULL
);

CREATE TABLE judgement (
    seq BIGINT NOT NULL,
    run_id VARCHAR NOT NULL,
    judge_id VARCHAR NOT NULL,
    trace_id VARCHAR NOT NULL,
    trace_version INTEGER NOT NULL,
    request_key VARCHAR NOT NULL,
    verdict VARCHAR NOT NULL,           -- PASS, FAIL, NO_VERDICT
    reason VARCHAR NOT NULL,
    quote VARCHAR NOT NULL,
    problem VARCHAR NOT NULL,           -- why there is no verdict, or what is wrong with the quote
    created_at TIMESTAMP NOT NULL
);

CREATE TABLE triage (
    seq BIGINT NOT NULL,
    run_id VARCHAR NOT NULL,
    trace_id VARCHAR NOT NULL,
    drawer VARCHAR NOT NULL,            -- label, prompt, model, none
    created_at TIMESTAMP NOT NULL
);

-- The figures of the Audit screen, equal to what it shows.
CREATE TABLE confusion (
    run_id VARCHAR NOT NULL,
    tp BIGINT NOT NULL,                 -- positive: the judge reports a failure
    fn BIGINT NOT NULL,
    fp BIGINT NOT NULL,
    tn BIGINT NOT NULL,
    no_verdict_fail BIGINT NOT NULL,
    no_verdict_pass BIGINT NOT NULL,
    pending BIGINT NOT NULL,
    updated_at TIMESTAMP NOT NULL
);

CREATE TABLE figure (
    run_id VARCHAR NOT NULL,
    name VARCHAR NOT NULL,
    k BIGINT,
    n BIGINT,
    value DOUBLE,
    low DOUBLE,
    high DOUBLE,
    updated_at TIMESTAMP NOT NULL
);
