import { useEffect, useState } from 'preact/hooks'
import { useConsole } from './console-context.ts'
import { formatDistance } from './time.ts'

/** Whether what is on the screen is live. A short break is not worth a word. */
export function ConnectionStateLine() {
  const { inbox, announcer } = useConsole()
  const link = inbox.link.value
  const [settled, setSettled] = useState(link.name)
  useEffect(() => {
    const quiet = link.name === 'live' || link.name === 'refused' ? 0 : 1500
    const timer = setTimeout(() => setSettled(link.name), quiet)
    return () => clearTimeout(timer)
  }, [link.name])
  const live = settled === 'live'
  useEffect(() => {
    if (settled === 'waiting') announcer.say('The inbox is not live. Reconnecting.')
    if (live) announcer.say('The inbox is live.')
  }, [settled === 'waiting', live])

  if (settled === 'refused')
    return <p class="link-state off">Not live: this session may not watch the inbox. Reload to see what is new.</p>
  if (live) return <p class="link-state on">Live</p>
  return (
    <p class="link-state waiting">
      {settled === 'connecting' ? 'Connecting…' : 'Reconnecting…'}
      {link.name === 'waiting' && ` next try in ${formatDistance(link.retryAt - Date.now())}`}
    </p>
  )
}
