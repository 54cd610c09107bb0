import envSchema from 'env-schema'
import { type Static, Type } from 'typebox'

const whole = (fallback: number, description: string) => Type.Integer({ default: fallback, minimum: 1, description })

const schema = Type.Object({
  CHAOS_DESTINATIONS: whole(20, 'Destinations of each lead in the delivery run.'),
  CHAOS_LEADS: whole(200, 'Leads in the delivery run; each goes to every destination.'),
  CHAOS_LEAD_EVERY_MS: whole(200, 'Pause between two leads.'),
  CHAOS_KILL_EVERY_MS: whole(2_000, 'Pause between a restart and the next kill.'),
  CHAOS_RECOVERED: whole(10_000, 'Failed deliveries in the recovery run.'),
  CHAOS_ANSWER_MS: whole(1_000, 'Maximum response time of a destination in the delivery run.'),
  ISOLATION_PER_SECOND: whole(100, 'Deliveries per second, round-robin over all destinations.'),
  ISOLATION_SECONDS: whole(30, 'Duration of one measurement.'),
  ISOLATION_ROUNDS: whole(2, 'Measurements with and without hanging destinations.'),
  HOSTILE_ROUNDS: whole(10, 'Rounds over all hostile destinations.'),
})

/** Reads duration and load of the chaos runs from the environment. */
export const chaosConfig = () => envSchema<Static<typeof schema>>({ schema })
