// Writes deploy/grafana/waystation.json, the dashboard of the metrics: `bun scripts/dashboard.ts`. A row is a heading with its
// panels, a panel a title, a unit and its expressions.

type Query = [expr: string, legend: string]

interface Panel {
  title: string
  unit: string
  queries: Query[]
}

const on = 'instance=~"$instance"'
const rate = (metric: string, labels = '') => `rate(${metric}{${on}${labels}}[$__rate_interval])`
const quantile = (q: number, metric: string, by = '') =>
  `histogram_quantile(${q}, sum by (le${by}) (${rate(`${metric}_bucket`)}))`
const quantiles = (metric: string): Query[] => [
  [quantile(0.5, metric), 'p50'],
  [quantile(0.95, metric), 'p95'],
  [quantile(0.99, metric), 'p99'],
]

const rows: [heading: string, panels: Panel[]][] = [
  [
    'Requests',
    [
      {
        title: 'Requests a second, by status',
        unit: 'reqps',
        queries: [[`sum by (status) (${rate('waystation_http_requests_total')})`, '{{status}}']],
      },
      {
        title: 'Requests a second, by route',
        unit: 'reqps',
        queries: [
          [
            `topk(10, sum by (method, route) (${rate('waystation_http_requests_total')}))`,
            '{{method}} {{route}}',
          ],
        ],
      },
      { title: 'Duration', unit: 's', queries: quantiles('waystation_http_request_duration_seconds') },
      {
        title: 'Slowest routes, p95',
        unit: 's',
        queries: [
          [
            `topk(10, ${quantile(0.95, 'waystation_http_request_duration_seconds', ', method, route')})`,
            '{{method}} {{route}}',
          ],
        ],
      },
      {
        title: 'Errors of ours, share of requests',
        unit: 'percentunit',
        queries: [
          [
            `sum(${rate('waystation_http_requests_total', ', status=~"5.."')}) / sum(${rate('waystation_http_requests_total')})`,
            '5xx',
          ],
        ],
      },
      {
        title: 'Refused for lack of room, by reason',
        unit: 'reqps',
        queries: [[`sum by (reason) (${rate('waystation_requests_shed_total')})`, '{{reason}}']],
      },
      {
        title: 'Under way and waiting',
        unit: 'short',
        queries: [
          [`sum(waystation_http_requests_in_flight{${on}})`, 'under way'],
          [`sum(waystation_waiters{${on}})`, 'wait for an event'],
        ],
      },
    ],
  ],
  [
    'Jobs',
    [
      {
        title: 'Due',
        unit: 'short',
        queries: [[`max by (kind) (waystation_jobs_due{${on}})`, '{{kind}}']],
      },
      {
        title: 'How late',
        unit: 's',
        queries: [
          [`max(waystation_jobs_late_seconds{${on}})`, 'oldest that is due'],
          [quantile(0.5, 'waystation_job_start_delay_seconds'), 'begun, p50'],
          [quantile(0.99, 'waystation_job_start_delay_seconds'), 'begun, p99'],
        ],
      },
      {
        title: 'Attempts a second, by outcome',
        unit: 'ops',
        queries: [[`sum by (outcome) (${rate('waystation_attempts_total')})`, '{{outcome}}']],
      },
      {
        title: 'Attempts a second, by kind',
        unit: 'ops',
        queries: [[`sum by (kind) (${rate('waystation_attempts_total')})`, '{{kind}}']],
      },
      {
        title: 'Duration of attempts, p95',
        unit: 's',
        queries: [[quantile(0.95, 'waystation_attempt_duration_seconds', ', kind'), '{{kind}}']],
      },
      {
        title: 'Leases that expired, failures in the background',
        unit: 'short',
        queries: [
          [`sum(increase(waystation_leases_expired_total{${on}}[$__rate_interval]))`, 'leases'],
          [`sum(increase(waystation_background_errors_total{${on}}[$__rate_interval]))`, 'failures'],
        ],
      },
    ],
  ],
  [
    'Database',
    [
      { title: 'Commits', unit: 's', queries: quantiles('waystation_commit_seconds') },
      { title: 'Flushes of the log (SQLite)', unit: 's', queries: quantiles('waystation_fsync_seconds') },
      {
        title: 'Writes in a commit',
        unit: 'short',
        queries: [
          [
            `sum(${rate('waystation_commit_batch_size_sum')}) / sum(${rate('waystation_commit_batch_size_count')})`,
            'mean',
          ],
          [quantile(0.99, 'waystation_commit_batch_size'), 'p99'],
        ],
      },
      {
        title: 'Connections (PostgreSQL), writes that wait',
        unit: 'short',
        queries: [
          [`sum by (state) (waystation_database_pool_connections{${on}})`, '{{state}}'],
          [`sum(waystation_writes_waiting{${on}})`, 'writes that wait'],
        ],
      },
      {
        title: 'Database and disk',
        unit: 'bytes',
        queries: [
          [`max(waystation_database_bytes{${on}})`, 'database'],
          [`min by (instance) (waystation_disk_free_bytes{${on}})`, 'free on the disk of {{instance}}'],
          [`max(waystation_disk_reserve_bytes{${on}})`, 'reserve'],
        ],
      },
      {
        title: 'Steps of the sweep',
        unit: 's',
        queries: quantiles('waystation_sweep_seconds'),
      },
    ],
  ],
  [
    'Processes',
    [
      {
        title: 'Ready',
        unit: 'bool_yes_no',
        queries: [[`waystation_ready{${on}}`, '{{instance}}']],
      },
      { title: 'Event loop delay', unit: 's', queries: quantiles('waystation_event_loop_delay_seconds') },
      {
        title: 'Processor',
        unit: 'percentunit',
        queries: [[`sum by (instance) (${rate('process_cpu_seconds_total')})`, '{{instance}}']],
      },
      {
        title: 'Memory',
        unit: 'bytes',
        queries: [
          [`sum by (instance) (process_resident_memory_bytes{${on}})`, '{{instance}}'],
          [`sum(waystation_memory_budget_used_bytes{${on}})`, 'bodies and answers'],
        ],
      },
      {
        title: 'Open files',
        unit: 'short',
        queries: [
          [`process_open_fds{${on}}`, '{{instance}}'],
          [`process_max_fds{${on}}`, 'most of {{instance}}'],
        ],
      },
      {
        title: 'Workers, caches',
        unit: 'short',
        queries: [
          [`sum(waystation_workers{${on}})`, 'workers'],
          [`sum(increase(waystation_worker_restarts_total{${on}}[$__rate_interval]))`, 'restarts'],
          [`sum by (cache) (waystation_cache_entries{${on}})`, 'entries of {{cache}}'],
        ],
      },
    ],
  ],
]

const datasource = { type: 'prometheus', uid: '${datasource}' }
const panel_height = 8
const panels_in_line = 3

function panelOf({ title, unit, queries }: Panel, id: number, x: number, y: number): object {
  return {
    id,
    type: 'timeseries',
    title,
    datasource,
    gridPos: { x, y, w: 24 / panels_in_line, h: panel_height },
    fieldConfig: {
      defaults: { unit, min: 0, custom: { fillOpacity: 8, showPoints: 'never' } },
      overrides: [],
    },
    options: {
      legend: { displayMode: 'list', placement: 'bottom' },
      tooltip: { mode: 'multi', sort: 'desc' },
    },
    targets: queries.map(([expr, legendFormat], i) => ({
      ...{ refId: String.fromCharCode(65 + i), datasource, expr, legendFormat },
    })),
  }
}

function panelsOf(): object[] {
  const panels: object[] = []
  let y = 0
  for (const [heading, of_row] of rows) {
    panels.push({
      ...{ id: panels.length + 1, type: 'row', title: heading, collapsed: false },
      ...{ gridPos: { x: 0, y, w: 24, h: 1 }, panels: [] },
    })
    y += 1
    for (const [i, panel] of of_row.entries()) {
      const x = (i % panels_in_line) * (24 / panels_in_line)
      panels.push(panelOf(panel, panels.length + 1, x, y + Math.floor(i / panels_in_line) * panel_height))
    }
    y += Math.ceil(of_row.length / panels_in_line) * panel_height
  }
  return panels
}

/** The text of the dashboard. */
export function dashboardText(): string {
  const dashboard = {
    title: 'Waystation',
    uid: 'waystation',
    tags: ['waystation'],
    schemaVersion: 39,
    editable: true,
    time: { from: 'now-3h', to: 'now' },
    refresh: '30s',
    templating: {
      list: [
        { name: 'datasource', label: 'Data source', type: 'datasource', query: 'prometheus', current: {} },
        {
          ...{ name: 'instance', label: 'Instance', type: 'query', datasource, refresh: 2, sort: 1 },
          ...{ query: { query: 'label_values(waystation_info, instance)', refId: 'instances' } },
          ...{ includeAll: true, multi: true, allValue: '.*', current: { text: 'All', value: '$__all' } },
        },
      ],
    },
    annotations: { list: [] },
    panels: panelsOf(),
  }
  return `${JSON.stringify(dashboard, null, 2)}\n`
}

if (import.meta.main) await Bun.write('deploy/grafana/waystation.json', dashboardText())
