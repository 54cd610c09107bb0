// With these types, the package is built without React, which the application provides.
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
