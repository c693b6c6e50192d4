-- traceparent: the trace that the job belongs to, as its attempts continue it.
alter table jobs add column traceparent {text};
