import { type Command, CommandKind } from '#proto/command/v1/command_pb.js'

/** The visitor has yet to decide, or to do it. */
export const isOpen = ({ state, kind }: Command) =>
  state === 'requested' || state === 'granted' || (state === 'accepted' && kind === CommandKind.NAVIGATION)

export const nameOf = ({ kind }: Command) => (kind === CommandKind.SCREENSHOT ? 'Screenshot' : 'Navigation')

const stateTexts: Record<string, string> = {
  requested: 'Waiting for the visitor',
  accepted: 'Accepted, on the way',
  completed: 'Arrived there',
  failed: 'Failed',
  declined: 'Declined',
  granted: 'Granted, waiting for the picture',
  uploaded: 'Picture is here',
  denied: 'Denied',
  unsupported: 'Their browser cannot',
  expired: 'Ran out of time',
  cancelled: 'Taken back',
}

export const stateText = ({ state }: Command) => stateTexts[state] ?? state

export function toneOf(state: string): string {
  if (state === 'uploaded' || state === 'completed') return 'ok'
  return ['requested', 'granted', 'accepted'].includes(state) ? 'info' : 'warn'
}
