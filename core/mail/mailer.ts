import { createRequire } from 'node:module'
import { perCore } from '../core.ts'

export interface Mail {
  to: string
  subject: string
  text: string
  html?: string
  /** Name of the sender, instead of that in the settings. */
  fromName?: string
  /** Equal for each attempt, so that mailboxes can recognise a repeat. */
  messageId?: string
  /** The address that stops further mails of this kind with one click (RFC 8058). */
  unsubscribeUrl?: string
}

const timeoutMs = 10_000
const maxWaiting = 100

/** Loads the library at its first use: it takes memory, and most services send no mail. */
const loadLibrary = (): typeof import('nodemailer') => createRequire(import.meta.url)('nodemailer')

export const senderAddress = (from: string) =>
  from
    .slice(from.lastIndexOf('<') + 1)
    .replace('>', '')
    .trim()

export const mailerOf = perCore(({ config: { SMTP_URL: url, SMTP_FROM: from }, logger }) => {
  const timeouts = { connectionTimeout: timeoutMs, greetingTimeout: timeoutMs, socketTimeout: timeoutMs }
  const transport =
    url === ''
      ? undefined
      : loadLibrary().createTransport({ url, pool: true, maxConnections: 1, maxRequeues: 1, ...timeouts })
  const address = senderAddress(from)
  let waiting = 0

  return {
    isEnabled: transport !== undefined,

    /** Rejects if the server cannot be reached, or refuses the user. */
    async verify() {
      await transport?.verify()
    },

    /** Rejects if the server does not accept the mail. Without `responseCode`, it may have accepted it. */
    async send({ to, subject, text, html, fromName, messageId, unsubscribeUrl }: Mail) {
      if (!transport) throw new Error('no mail server is configured')
      if (waiting >= maxWaiting) throw new Error('too many mails wait for the mail server')
      waiting += 1
      // The address is an object, so that its text is never read as a list of addresses.
      const mail = {
        from: fromName === undefined ? from : { name: fromName, address },
        to: { name: '', address: to },
        subject,
        text,
        html,
        messageId: messageId && `<${messageId}@${address.split('@').at(-1)}>`,
        headers: {
          'Auto-Submitted': 'auto-generated',
          ...(unsubscribeUrl && { 'List-Unsubscribe-Post': 'List-Unsubscribe=One-Click' }),
        },
        list: unsubscribeUrl ? { unsubscribe: unsubscribeUrl } : undefined,
      }
      await transport.sendMail(mail).finally(() => {
        waiting -= 1
      })
    },

    /** A failure is only logged, without the address. */
    sendLater(mail: Mail) {
      this.send(mail).catch((error: { code?: string; responseCode?: number }) =>
        logger.warn({ reason: error.code, answer: error.responseCode }, 'a mail was not sent'),
      )
    },

    close: () => transport?.close(),
  }
})
