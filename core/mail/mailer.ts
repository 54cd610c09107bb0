import nodemailer from 'nodemailer'
import type { Logger } from 'pino'

export type Mailer = ReturnType<typeof createMailer>

export interface Mail {
  to: string
  subject: string
  text: string
}

const timeoutMs = 10_000
/** Mails that wait for the server. */
const maxWaiting = 100

/** Sends mails over the SMTP server of the settings. */
export function createMailer({ url, from, logger }: { url: string; from: string; logger: Logger }) {
  const timeouts = { connectionTimeout: timeoutMs, greetingTimeout: timeoutMs, socketTimeout: timeoutMs }
  const transport =
    url === '' ? undefined : nodemailer.createTransport({ url, pool: true, maxConnections: 1, ...timeouts })
  let waiting = 0

  return {
    isEnabled: transport !== undefined,

    /** Sends a mail. Rejects if the server does not accept it. */
    async send({ to, subject, text }: Mail): Promise<void> {
      if (!transport) throw new Error('no mail server is configured')
      if (waiting >= maxWaiting) throw new Error('too many mails wait for the mail server')
      waiting += 1
      // The address is an object, so that its text is never read as a list of addresses.
      await transport.sendMail({ from, to: { name: '', address: to }, subject, text }).finally(() => {
        waiting -= 1
      })
    },

    /** Sends a mail later. The caller learns nothing of a failure, which is logged without the address. */
    sendLater(mail: Mail): void {
      this.send(mail).catch((error: { code?: string; responseCode?: number }) =>
        logger.warn({ reason: error.code, answer: error.responseCode }, 'a mail was not sent'),
      )
    },

    close: () => transport?.close(),
  }
}
