import { useEffect } from 'preact/hooks'
import { useConsole } from '../console-context.ts'

/** Lets the keys `j` and `k` move the focus between the rows that match the selector. */
export function useRowKeys(selector: string) {
  const { shortcuts } = useConsole()
  useEffect(() => {
    function move(step: number) {
      const all = [...document.querySelectorAll<HTMLElement>(selector)]
      const at = all.findIndex((row) => row.contains(document.activeElement))
      const from = at >= 0 ? at : all.findIndex((row) => row.hasAttribute('aria-current'))
      const target = from < 0 ? all[0] : all[Math.max(0, Math.min(all.length - 1, from + step))]
      target?.focus()
    }
    return shortcuts.bind({ j: () => move(1), k: () => move(-1) })
  }, [shortcuts, selector])
}
