/** Returns an object that stands for what `find` returns, such as what a hook starts anew before each test. */
export const latest = <T extends object>(find: () => T): T =>
  new Proxy({} as T, { get: (_, name) => Reflect.get(find(), name) })
