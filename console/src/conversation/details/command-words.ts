import { type Command, CommandKind } from '#proto/command/v1/command_pb.js'

/** Returns true until the command has a final state, such as `completed` or `expired`. */
export const isOpen = ({ state, kind }: Command) =>
  state === 'requested' || state === 'granted' || (state === 'accepted' && kind === CommandKind.NAVIGATION)

export const nameOf = ({ kind }: Pick<Command, 'kind'>) =>
  kind === CommandKind.SCREENSHOT ? 'Screenshot' : 'Page suggestion'

const stateTexts: Record<string, string> = {
  requested: 'Waiting for the visitor',
  accepted: 'Accepted, opening the page',
  completed: 'Completed',
  failed: 'Failed',
  declined: 'Declined',
  granted: 'Allowed, waiting for the image',
  uploaded: 'Image received',
  denied: 'Denied',
  unsupported: 'Not supported by the browser',
  expired: 'Expired',
  cancelled: 'Cancelled',
}

export const stateText = ({ state }: Command) => stateTexts[state] ?? state

export function toneOf(state: string): string {
  if (state === 'uploaded' || state === 'completed') return 'ok'
  return ['requested', 'granted', 'accepted'].includes(state) ? 'info' : 'warn'
}
