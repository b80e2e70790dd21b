-- Features by which requests differ. Both tables are appended to; the newest row of a dimension, and of a case in it, counts.
CREATE TABLE dimension (
    seq BIGINT NOT NULL,
    dimension_id VARCHAR NOT NULL,      -- stays, whatever the dimension is called
    name VARCHAR NOT NULL,
    field VARCHAR NOT NULL,             -- metadata field that gives the value where neither a hand nor a rule does
    rules JSON NOT NULL,                -- [{value, where, how, what}], the first that matches gives the value
    place DOUBLE NOT NULL,              -- order on the screens
    removed BOOLEAN NOT NULL,
    author VARCHAR NOT NULL,
    created_at TIMESTAMP NOT NULL
);

CREATE TABLE dimension_value (
    seq BIGINT NOT NULL,
    dimension_id VARCHAR NOT NULL,
    trace_id VARCHAR NOT NULL,
    value VARCHAR NOT NULL,             -- '' for none by hand: the rules and the metadata field count again
    author VARCHAR NOT NULL,
    undoes BIGINT NOT NULL,             -- seq of the row that this one takes back, 0 for none
    created_at TIMESTAMP NOT NULL
);
