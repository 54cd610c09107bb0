/**
 * Keeps parts of a process, such as caches, each made at its first use. A copy of the object would have none,
 * so the private field makes it a type error.
 */
export class ProcessParts {
  readonly #parts = new Map<unknown, unknown>()

  part<T>(key: unknown, make: () => T) {
    if (!this.#parts.has(key)) this.#parts.set(key, make())
    return this.#parts.get(key) as T
  }

  setPart(key: unknown, part: unknown) {
    this.#parts.set(key, part)
  }
}

/** Returns a function that makes a part of a process at its first call. `set` replaces the part before that call. */
export function perProcess<P extends ProcessParts, T>(make: (process: P) => T) {
  const of = (process: P) => process.part(of, () => make(process))
  return Object.assign(of, { set: (process: P, part: T) => process.setPart(of, part) })
}
