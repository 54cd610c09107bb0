import type { ReplayWindow } from './replay-window.ts'
import type { StreamSubscriptions } from './stream-subscriptions.ts'

export interface StreamService {
  replayWindow: ReplayWindow
  streamSubscriptions: StreamSubscriptions
}
