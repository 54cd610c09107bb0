import envSchema from 'env-schema'
import { type Static, Type } from 'typebox'

const whole = (fallback: number, description: string) => Type.Integer({ default: fallback, minimum: 1, description })

const schema = Type.Object({
  CHAOS_DESTINATIONS: whole(20, 'Destinations of each lead under fire.'),
  CHAOS_LEADS: whole(200, 'Leads under fire; each goes to every destination.'),
  CHAOS_LEAD_EVERY_MS: whole(200, 'Pause between two of them.'),
  CHAOS_KILL_EVERY_MS: whole(2_000, 'Pause between a start and the next kill.'),
  CHAOS_ANSWER_MS: whole(1_000, 'Longest that a destination takes to answer under fire.'),
  ISOLATION_PER_SECOND: whole(100, 'Deliveries a second, over all destinations in turn.'),
  ISOLATION_SECONDS: whole(30, 'Length of one measurement.'),
  ISOLATION_ROUNDS: whole(2, 'Measurements of each kind.'),
  HOSTILE_ROUNDS: whole(10, 'Rounds over all hostile destinations.'),
})

/** How long and how hard, from the environment. */
export const chaosConfig = () => envSchema<Static<typeof schema>>({ schema })
