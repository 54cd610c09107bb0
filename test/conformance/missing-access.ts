/** A test needs something that the checked deployment does not provide, for example its database. */
export class MissingAccess extends Error {
  constructor(what: string) {
    super(`needs ${what}`)
  }
}

/** Returns an object whose fields throw `MissingAccess` when a test reads them. */
export const missing = <T extends object>(what: string): T =>
  new Proxy({} as T, {
    get() {
      throw new MissingAccess(what)
    },
  })
