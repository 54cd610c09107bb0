import { expectTypeOf, it } from 'vitest'
import type { WidgetConfigAnswer } from '../../gateway/schemas/config.ts'
import type { MessageAnswer, SendMessageAnswer, SendMessageBody } from '../../gateway/schemas/messages.ts'
import type { WidgetConfig } from '../../widget/src/client/types.ts'
import type { MessageInput } from '../../widget/src/messages/outbox.ts'
import type { AcceptedMessage, ServiceMessage } from '../../widget/src/transport/wire.ts'

it('the widget knows every field of the public schemas, which the compiler checks', () => {
  expectTypeOf<keyof ServiceMessage>().toEqualTypeOf<keyof MessageAnswer>()
  expectTypeOf<keyof AcceptedMessage>().toEqualTypeOf<keyof SendMessageAnswer>()
  expectTypeOf<keyof MessageInput>().toEqualTypeOf<keyof (typeof SendMessageBody)['properties']>()
  // Only other clients need the names of the contract and of its compatibility.
  type Unread = 'contract' | 'contractVersion' | 'compatibility'
  expectTypeOf<keyof WidgetConfig>().toEqualTypeOf<keyof Omit<WidgetConfigAnswer, Unread>>()
  expectTypeOf<keyof WidgetConfig['appearance']>().toEqualTypeOf<keyof WidgetConfigAnswer['appearance']>()
})
