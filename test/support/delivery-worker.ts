import { freePort, type StartedProcess, startProcess } from './processes.ts'

/** A delivery worker in a separate process. */
export interface WorkerProcess {
  process(): StartedProcess
  /** URL of the worker's health checks. */
  healthUrl: string
  /** URL of the worker's metrics. */
  metricsUrl: string
  /** Id that the worker sends in its claims. Each start creates a new id. */
  workerId(): string
  start(): Promise<void>
  kill(): Promise<void>
}

/** Starts a worker for the cores of a stack. Local destinations are allowed. */
export async function startDeliveryWorker(
  stack: { cores: { url: string }[]; dataDir: string },
  env: Record<string, string> = {},
): Promise<WorkerProcess> {
  const [port, metricsPort] = [await freePort(), await freePort()]
  let running: StartedProcess

  async function start() {
    running = await startProcess({
      entry: 'delivery/main.ts',
      name: 'delivery worker',
      env: {
        DELIVERY_ALLOWED_CIDRS: '127.0.0.1/32',
        DATA_DIR: stack.dataDir,
        CORE_URLS: stack.cores.map(({ url }) => url).join(','),
        DELIVERY_PORT: String(port),
        METRICS_PORT: String(metricsPort),
        ...env,
      },
      readyUrl: `http://127.0.0.1:${port}/readyz`,
    })
  }

  await start()
  return {
    start,
    healthUrl: `http://127.0.0.1:${port}`,
    metricsUrl: `http://127.0.0.1:${metricsPort}/metrics`,
    process: () => running,
    workerId() {
      const [, id] = running.output().match(/"workerId":"([^"]+)"/) ?? []
      if (id === undefined) throw new Error('the log has no workerId')
      return id
    },
    async kill() {
      running.kill('SIGKILL')
      await running.exited
    },
  }
}
