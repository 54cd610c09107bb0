import type { Core } from './core.ts'

type Functions = Record<string, (core: Core, ...args: never[]) => unknown>

/** Binds functions of a core, for rooms that still take objects. */
export const bound = <F extends Functions>(core: Core, functions: F) =>
  Object.fromEntries(
    Object.entries(functions).map(([name, each]) => [name, (...args: never[]) => each(core, ...args)]),
  ) as { [K in keyof F]: F[K] extends (core: Core, ...args: infer A) => infer R ? (...args: A) => R : never }
