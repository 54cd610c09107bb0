import { join } from 'node:path'
import {
  type CommandProcess,
  freePort,
  type StartedProcess,
  startCommandProcess,
  startProcess,
} from '../../test/support/processes.ts'
import { profiling, startCore, startGateway } from '../service.ts'
import { childrenOf, usageOf } from '../usage.ts'
import { scratchFolder } from '../workspace.ts'

/** CPU seconds since the start of each process. */
export interface CpuSeconds {
  gateway: number
  core: number
  engine: number
}

export interface Layout {
  name: string
  start(profile?: string): Promise<RunningLayout>
}

export interface RunningLayout {
  load: CommandProcess
  cpu(): Promise<CpuSeconds>
  stop(): Promise<void>
}

const loadEntry = 'bench/requests/load.ts'

/** Gateway and core as two processes, from this checkout or from another one. */
export function apart(name: string, root?: string): Layout {
  return {
    name,
    async start(profile) {
      const core = await startCore({ profile, root })
      const gateway = await startGateway(core, { profile, root })
      const args = [String(gateway.port), new URL(core.url).port, join(core.dataDir, 'demo.json')]
      const load = await startCommandProcess({ entry: loadEntry, args })
      return {
        load,
        async cpu() {
          const [ofGateway, ofCore] = await Promise.all([usageOf([gateway.running.pid]), splitOf(core.running)])
          return { gateway: ofGateway.cpuSeconds, ...ofCore }
        },
        async stop() {
          for (const each of [load, gateway.running, core.running]) await each.stop()
        },
      }
    },
  }
}

/** Gateway and core in one process, as in `npm start`. The core's time is part of the gateway's. */
export const together: Layout = {
  name: 'one process',
  async start(profile) {
    const dataDir = await scratchFolder('together')
    const [gatewayPort, corePort, demoPort] = [await freePort(), await freePort(), await freePort()]
    const running = await startProcess({
      entry: 'dev/start.ts',
      nodeArgs: profiling(profile, 'together'),
      env: {
        DATA_DIR: dataDir,
        LOG_LEVEL: 'warn',
        METRICS_PORT: '0',
        RATE_LIMIT_FACTOR: '1000000',
        GATEWAY_HOST: '127.0.0.1',
        GATEWAY_PORT: String(gatewayPort),
        CORE_HOST: '127.0.0.1',
        CORE_PORT: String(corePort),
        DEMO_PORT: String(demoPort),
      },
      readyUrl: `http://127.0.0.1:${demoPort}/`,
    })
    const args = [String(gatewayPort), String(corePort), join(dataDir, 'demo.json')]
    const load = await startCommandProcess({ entry: loadEntry, args })
    return {
      load,
      async cpu() {
        const { core, engine } = await splitOf(running)
        return { gateway: core, core: 0, engine }
      },
      async stop() {
        for (const each of [load, running]) await each.stop()
      },
    }
  },
}

/** CPU time of a core and of the database engine, which is a child process of the core. */
async function splitOf({ pid }: StartedProcess): Promise<{ core: number; engine: number }> {
  const children = await childrenOf(pid)
  const [all, engine] = await Promise.all([usageOf([pid]), usageOf(children)])
  return { core: all.cpuSeconds - engine.cpuSeconds, engine: engine.cpuSeconds }
}
