-- How likely the model finds each option as the first token of its reply; NULL where it was not asked for that.
ALTER TABLE completion ADD COLUMN likelihoods JSON;      -- {option: natural log-probability}
