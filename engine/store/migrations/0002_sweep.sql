-- Candidate prompts scored on a dataset. A prompt and a dataset are known by the hash of what they hold.
CREATE TABLE prompt (
    prompt_id VARCHAR NOT NULL,         -- content hash of system and template
    name VARCHAR NOT NULL,
    system VARCHAR NOT NULL,
    template VARCHAR NOT NULL,          -- text with named fields: {review}
    source VARCHAR NOT NULL,
    created_at TIMESTAMP NOT NULL
);

CREATE TABLE dataset (
    dataset_id VARCHAR NOT NULL,        -- content hash of the items
    name VARCHAR NOT NULL,
    source VARCHAR NOT NULL,
    items BIGINT NOT NULL,
    created_at TIMESTAMP NOT NULL
);

CREATE TABLE item (
    dataset_id VARCHAR NOT NULL,
    position BIGINT NOT NULL,           -- order in the file, from 0
    item_id VARCHAR NOT NULL,
    fields JSON NOT NULL,
    answer VARCHAR NOT NULL             -- the reference
);

CREATE TABLE sweep (
    sweep_id VARCHAR NOT NULL,          -- content hash of the protocol: all columns below but name and created_at
    name VARCHAR NOT NULL,
    dataset_id VARCHAR NOT NULL,
    scorer VARCHAR NOT NULL,            -- exact, number, choice
    letters VARCHAR NOT NULL,           -- valid letters of a choice
    model_id VARCHAR NOT NULL,
    sampling JSON NOT NULL,
    pool BIGINT NOT NULL,               -- so many items of the dataset, drawn with pool_seed, are all there is to draw from
    pool_seed BIGINT NOT NULL,
    seeds JSON NOT NULL,
    ks JSON NOT NULL,
    created_at TIMESTAMP NOT NULL
);

CREATE TABLE sweep_prompt (
    sweep_id VARCHAR NOT NULL,
    position BIGINT NOT NULL,
    prompt_id VARCHAR NOT NULL,
    name VARCHAR NOT NULL               -- as the sweep calls it, unique within it
);

ALTER TABLE run ADD COLUMN sweep_id VARCHAR DEFAULT '';

-- What a sweep's run is about: the prompt and the item behind each request key.
CREATE TABLE run_cell (
    run_id VARCHAR NOT NULL,
    prompt_id VARCHAR NOT NULL,
    item BIGINT NOT NULL,               -- position of the item in its dataset
    request_key VARCHAR NOT NULL,
    position BIGINT NOT NULL
);

CREATE TABLE outcome (
    seq BIGINT NOT NULL,
    run_id VARCHAR NOT NULL,
    prompt_id VARCHAR NOT NULL,
    item BIGINT NOT NULL,
    request_key VARCHAR NOT NULL,
    score DOUBLE,                       -- 1 right, 0 wrong or no answer; NULL when the request failed
    extracted VARCHAR NOT NULL,         -- the answer as the scorer read it, '' for no answer
    no_answer BOOLEAN NOT NULL,
    rule VARCHAR NOT NULL,              -- which rule of extraction found it
    problem VARCHAR NOT NULL,           -- the error of the request, or that the reply was cut off
    created_at TIMESTAMP NOT NULL
);

-- What the Sweep and Ranking screens show, equal to them.
CREATE TABLE score_matrix (
    run_id VARCHAR NOT NULL,
    top BIGINT NOT NULL,                -- size m of the top set that the tables were written for
    seed BIGINT NOT NULL,
    k BIGINT NOT NULL,
    prompt_id VARCHAR NOT NULL,
    score_sum DOUBLE NOT NULL,
    n BIGINT NOT NULL,                  -- coverage: items of the k with an outcome
    updated_at TIMESTAMP NOT NULL
);

CREATE TABLE agreement (
    run_id VARCHAR NOT NULL,
    top BIGINT NOT NULL,               -- size m of the top set
    seed_a BIGINT NOT NULL,
    k_a BIGINT NOT NULL,
    seed_b BIGINT NOT NULL,
    k_b BIGINT NOT NULL,
    tau_b DOUBLE,                       -- NULL where not defined: all prompts tied, or a condition without complete scores
    rho DOUBLE,
    top1 DOUBLE,
    topm DOUBLE,
    updated_at TIMESTAMP NOT NULL
);

CREATE TABLE ranking (
    run_id VARCHAR NOT NULL,
    top BIGINT NOT NULL,               -- size m of the top set
    prompt_id VARCHAR NOT NULL,
    rank DOUBLE,                        -- 1 best; tied prompts share the average
    score_sum DOUBLE NOT NULL,
    n BIGINT NOT NULL,
    mean DOUBLE,
    low DOUBLE,
    high DOUBLE,
    no_answer BIGINT NOT NULL,
    failed BIGINT NOT NULL,
    updated_at TIMESTAMP NOT NULL
);
