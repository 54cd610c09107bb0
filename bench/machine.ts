import { readFile } from 'node:fs/promises'
import { cpus, loadavg, release, totalmem } from 'node:os'

/**
 * Processor, memory, operating system, Node version and load of the machine, printed with every
 * result.
 */
export async function machineFacts(): Promise<[name: string, value: string][]> {
  const system = await readFile('/etc/os-release', 'utf8').catch(() => '')
  const name = /^PRETTY_NAME="?([^"\n]*)/m.exec(system)?.[1] ?? process.platform
  return [
    ['processor', `${cpus().length} × ${cpus()[0]?.model.trim() ?? 'unknown'}`],
    ['memory', `${Math.round(totalmem() / 2 ** 30)} GiB`],
    ['system', `${name}, Linux ${release()}`],
    ['Node', process.version],
    ['load before the run', (loadavg()[0] ?? 0).toFixed(2)],
  ]
}
