import { useEffect, useState } from 'preact/hooks'
import { useConsole } from './console-context.ts'
import { formatDistance } from './time.ts'

/**
 * Shows whether the inbox receives changes live. Interruptions shorter than 1.5 s are not shown.
 */
export function ConnectionStateLine() {
  const { inbox, announcer } = useConsole()
  const link = inbox.link.value
  const [settled, setSettled] = useState(link.name)
  useEffect(() => {
    const quiet = link.name === 'live' || link.name === 'rejected' ? 0 : 1500
    const timer = setTimeout(() => setSettled(link.name), quiet)
    return () => clearTimeout(timer)
  }, [link.name])
  const live = settled === 'live'
  useEffect(() => {
    if (settled === 'waiting') announcer.say('Inbox disconnected. Reconnecting.')
    if (live) announcer.say('Inbox connected.')
  }, [settled === 'waiting', live])

  if (settled === 'rejected')
    return <p class="link-state off">Offline: this session does not allow live updates. Reload to see new messages.</p>
  if (live) return <p class="link-state on">Live</p>
  return (
    <p class="link-state waiting">
      {settled === 'connecting' ? 'Connecting…' : 'Reconnecting…'}
      {link.name === 'waiting' && ` next attempt in ${formatDistance(link.retryAt - Date.now())}`}
    </p>
  )
}
