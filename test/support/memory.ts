import { residentBytes } from './proc.ts'
import type { Stack } from './stack.ts'

/** Returns the current memory of each process of a stack in MiB, by name. */
export async function memoryOf({ cores, gateways }: Stack): Promise<Record<string, number>> {
  const parts = { core: cores[0]!, gateway: gateways[0]! }
  const entries = Object.entries(parts).map(async ([name, part]): Promise<[string, number]> => {
    return [name, Math.round((await residentBytes(part.process().pid)) / 2 ** 20)]
  })
  return Object.fromEntries(await Promise.all(entries))
}
