-- Acts stand in the timeline of the sandbox that they were about.

-- +goose Up
alter table acts add column sandbox text not null default ''; -- connection/sandbox
update acts set sandbox = target where action like 'sandbox.%' and target like '%/%';
create index acts_sandbox on acts (sandbox, id);

-- +goose Down
drop index acts_sandbox;
alter table acts drop column sandbox;
