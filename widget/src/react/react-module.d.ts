// Types of the React functions that this package uses. With these types, the package is built and
// checked without React, which the host's application provides.
declare module 'react' {
  export function useEffect(effect: () => undefined | (() => void), dependencies?: readonly unknown[]): void
  export function useRef<Value>(initial: Value): { current: Value }
  export function useState<Value>(): [Value | undefined, (next: Value | undefined) => void]
  export function useSyncExternalStore<Value>(
    subscribe: (onChange: () => void) => () => void,
    snapshot: () => Value,
    serverSnapshot: () => Value,
  ): Value
}
