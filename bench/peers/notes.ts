// Said beside a figure that is not met: what was tried. A figure that is met needs none.

export const notes: Readonly<Record<string, string>> = {
  'reads-beside-writers-redis':
    'Writers no longer slow gets down, so this is the gap of a get alone; in two of three rounds of an earlier run webdis + Redis lost acknowledged writes, and those rounds do not count.',
  'puts-slow-redis':
    'All waiting puts share one commit for each flush, which gave 1.25 times the puts of several commits in flight; Redis has twice as many in one flush.',
  'puts-slow-before':
    'On another machine, an Intel Xeon with a quicker disk, it was 4.16 times at commit 44405e6. Commits that share a flush were tried for both figures of slow puts; nothing further was tried on this machine.',
  'kv-get':
    'A third of a get is SQLite, half of that its lock calls, and a fifth the response with its headers. A template of the headers saved 0.15 µs at most, a smaller heap of JavaScript nothing.',
  'kv-put':
    'Pages of 1 and 2 KiB cost as much as those of 4 KiB. A flush in the event loop, while the disk is quick, saved 22 % of the CPU of a put.',
  'rate-check':
    'SQLite prepared its statements again at each run until a parameter was hidden from its planner. What remains is one statement, the pages that it writes to the log, and the body in JSON.',
  'rate-check-bare': 'As above; a bare `INCR` has no window that ends.',
  'rate-check-fastify':
    'The service flushes each counter to a disk of its own; the peer shares one flush of Redis between 64 commands in a pipeline.',
  hook: 'A message is three statements: its number, the message, and the one that it replaces. One statement for all messages of an inbox that arrive together was not built.',
  'hook-bare': 'As above; a bare `LPUSH` keeps no bound.',
  'audit-append':
    'Two statements, and an index for each filter. The index by id must stay: filters by time need it.',
  burst:
    'Each call is settled alone, in six statements: the job, the attempt, the schedule, the quota and two events; a queue completes many jobs in one. About a quarter of the CPU is `node:http`: `fetch` has no hook between the look-up of a name and the connection, where its address is judged. Opening signing secrets was a thirtieth in a profile, so they stay in memory; one settlement for several calls was not built.',
  'trickle-cpu':
    'A search for due jobs every 10 ms, and results that wait up to 25 ms for the commit of the next lease, once halved it; since then each call leaves two numbered events. Calls that come 5 ms apart still share a lease, a commit and a flush with at most one other.',
  'trickle-late':
    'A search for due jobs every 10 ms, and results that wait up to 25 ms for the commit of the next lease, halved the CPU of each and made them later.',
  memory:
    'It neither grows nor shrinks over the second half. Half of it is the heap of JavaScript, and 16 MiB are the pages that connections to SQLite keep.',
}
