/**
 * Keeps the parts of the object of a process, such as caches, each made at its first use. A copy of the object has
 * no parts, so the private field makes a copy a type error.
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

/**
 * Returns a function that returns a part of a process. The process makes its part at the first call. `set`
 * replaces the part before the first call.
 */
export function perProcess<P extends ProcessParts, T>(make: (process: P) => T) {
  const of = (process: P) => process.part(of, () => make(process))
  return Object.assign(of, { set: (process: P, part: T) => process.setPart(of, part) })
}
