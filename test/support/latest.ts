/** Returns a stand-in for what `find` returns at each access. A hook may replace that object before each test. */
export const latest = <T extends object>(find: () => T): T =>
  new Proxy({} as T, { get: (_, name) => Reflect.get(find(), name) })
