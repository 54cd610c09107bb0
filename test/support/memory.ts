import { readFile } from 'node:fs/promises'
import type { Stack } from './stack.ts'

/** Current memory of the processes of a stack in MiB, by name. */
export async function memoryOf({ cores, gateways }: Stack): Promise<Record<string, number>> {
  const parts = { core: cores[0]!, gateway: gateways[0]! }
  const entries = Object.entries(parts).map(async ([name, part]): Promise<[string, number]> => {
    const status = await readFile(`/proc/${part.process().pid}/status`, 'utf8')
    return [name, Math.round(Number(/^VmRSS:\s+(\d+)/m.exec(status)?.[1] ?? 0) / 1024)]
  })
  return Object.fromEntries(await Promise.all(entries))
}
