-- effect_id: the effect that it is about; payload, its bytes.
alter table checkpoints add column effect_id {text};
alter table checkpoints add column payload {text};
