import { useEffect, useLayoutEffect, useRef, useState } from 'preact/hooks'
import type { Message } from '#proto/messaging/v1/messaging_pb.js'

/** Distance from the end, in pixels, up to which the log counts as scrolled to the end. */
const nearEnd = 80

/**
 * Scrolls the message log: keeps it at the end, keeps the visible messages in place, or shows the
 * target. `hasNew` is true if there are new messages below the visible ones.
 *
 * @param target sequence of the message to scroll to when it is loaded
 * @param others everything else that changes the height of the log, always the same number of values
 */
export function useLogScroll(messages: readonly Message[], target: number | undefined, others: readonly unknown[]) {
  const first = messages[0]?.messageId ?? ''
  const last = messages.at(-1)?.messageId ?? ''
  const hasTarget = messages.some(({ sequence }) => sequence === target)
  const scroller = useRef<HTMLElement>(null)
  const position = useRef({ atEnd: true, height: 0, first: '', last: '' })
  const [hasNew, setHasNew] = useState(false)

  // If the log is scrolled to the end, it stays at the end. Otherwise the visible messages stay in
  // place, even when older messages are inserted above.
  useLayoutEffect(() => {
    const element = scroller.current
    if (!element) return
    const { atEnd, height, first: firstBefore, last: lastBefore } = position.current
    if (atEnd) element.scrollTop = element.scrollHeight
    else if (firstBefore !== '' && firstBefore !== first) element.scrollTop += element.scrollHeight - height
    else if (lastBefore !== last) setHasNew(true)
    position.current = { ...position.current, height: element.scrollHeight, first, last }
  }, [first, last, ...others])

  useLayoutEffect(() => {
    const found = hasTarget && scroller.current?.querySelector<HTMLElement>('.message.found')
    if (!found) return
    position.current.atEnd = false
    found.scrollIntoView({ block: 'center' })
    found.focus({ preventScroll: true })
  }, [target, hasTarget])

  // A notice above the log or a longer draft below makes the log smaller. If the log was scrolled
  // to the end, it must stay there.
  useEffect(() => {
    const element = scroller.current!
    const observer = new ResizeObserver(() => {
      if (position.current.atEnd) element.scrollTop = element.scrollHeight
    })
    observer.observe(element)
    return () => observer.disconnect()
  }, [])

  function scrollToEnd() {
    scroller.current!.scrollTop = scroller.current!.scrollHeight
    setHasNew(false)
  }

  function onScroll() {
    const { scrollTop, scrollHeight, clientHeight } = scroller.current!
    position.current.atEnd = scrollHeight - scrollTop - clientHeight < nearEnd
    position.current.height = scrollHeight
    if (position.current.atEnd) setHasNew(false)
  }

  return { scroller, hasNew, scrollToEnd, onScroll }
}
