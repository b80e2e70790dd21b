-- Labelled cases that the expert reads again blind, to see how far they agree with themselves. Nothing here counts as a label.
CREATE TABLE blind_sample (
    sample_id VARCHAR NOT NULL,
    criterion_id VARCHAR NOT NULL,
    expert VARCHAR NOT NULL,
    seed BIGINT NOT NULL,               -- of the random draw
    created_at TIMESTAMP NOT NULL
);

CREATE TABLE blind_case (
    sample_id VARCHAR NOT NULL,
    position BIGINT NOT NULL,           -- order in which they are read
    trace_id VARCHAR NOT NULL,
    label_seq BIGINT NOT NULL           -- the label that is repeated
);

-- Append-only; of several for one case the latest by seq counts, one without a verdict takes the earlier back.
CREATE TABLE blind_verdict (
    seq BIGINT NOT NULL,
    sample_id VARCHAR NOT NULL,
    trace_id VARCHAR NOT NULL,
    verdict VARCHAR NOT NULL,           -- PASS, FAIL, UNDECIDED, '' for taken back
    critique VARCHAR NOT NULL,
    seconds DOUBLE NOT NULL,
    created_at TIMESTAMP NOT NULL
);
