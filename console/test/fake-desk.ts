import type { ServiceImpl } from '@connectrpc/connect'
import type { MessagingService } from '#proto/messaging/v1/messaging_pb.js'

/** Fake calls for colleagues and saved replies, which all operators of a workspace share. */
export function fakeDesk() {
  const replies = new Map([
    ['hours', 'We are open from 9 to 17.'],
    ['shipping', 'We ship within two days.'],
  ])
  return {
    async listAgents() {
      return { agents: [{ displayName: 'Ada' }, { displayName: 'Jonas' }] }
    },

    async listSavedReplies() {
      return { replies: [...replies].map(([shortcut, body]) => ({ shortcut, body })) }
    },

    async saveReply({ shortcut, body }) {
      replies.set(shortcut, body)
      return { reply: { shortcut, body } }
    },

    async deleteSavedReply({ shortcut }) {
      replies.delete(shortcut)
      return {}
    },
  } satisfies Partial<ServiceImpl<typeof MessagingService>>
}
