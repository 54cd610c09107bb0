interface TraceEvent {
  name: string
  pid: number
  tid: number
  /** Start of the event in microseconds. */
  ts: number
  dur?: number
  /** Thread time in microseconds. */
  tdur?: number
  args: { name?: string }
}

const scriptEvents = new Set([
  'EvaluateScript',
  'v8.compile',
  'v8.compileModule',
  'v8.evaluateModule',
  'FunctionCall',
  'RunMicrotasks',
  'MinorGC',
  'MajorGC',
])

export function readTrace(json: string) {
  const { traceEvents: events } = JSON.parse(json) as { traceEvents: TraceEvent[] }
  const mains = events.filter(({ name, args }) => name === 'thread_name' && args.name === 'CrRendererMain')
  const ofMain = events.filter(({ pid, tid }) => mains.some((main) => main.pid === pid && main.tid === tid))
  // Excludes the task that unloads the previous page.
  const commits = ofMain.filter(({ name }) => name === 'CommitLoad')
  const tasks = ofMain
    .filter(({ name }) => name === 'ThreadControllerImpl::RunTask')
    .filter((task) => !commits.some(({ ts }) => ts >= task.ts && ts <= endOf(task)))
    .map(({ tdur = 0 }) => tdur)
  const scripts = outermost(ofMain.filter(({ name }) => scriptEvents.has(name))).map(({ tdur = 0 }) => tdur)
  return {
    mainThreadMs: sum(tasks) / 1_000,
    scriptMs: sum(scripts) / 1_000,
    longestTaskMs: Math.max(0, ...tasks) / 1_000,
  }
}

const endOf = ({ ts, dur = 0 }: TraceEvent) => ts + dur
const sum = (values: number[]) => values.reduce((total, value) => total + value, 0)

function outermost(events: TraceEvent[]): TraceEvent[] {
  const ends = new Map<string, number>()
  return events
    .toSorted((one, other) => one.ts - other.ts || endOf(other) - endOf(one))
    .filter((event) => {
      const thread = `${event.pid} ${event.tid}`
      if (event.ts < (ends.get(thread) ?? 0)) return false
      ends.set(thread, endOf(event))
      return true
    })
}
