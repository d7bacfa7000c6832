/** How a guard is, as far as it knows without asking anybody. */

/** What `guard.health()` tells. */
export interface GuardHealth {
  /** `idle`: not started, which is no fault of a process that starts nothing. */
  readonly state: 'idle' | 'started' | 'closed';
  /** Names of the backends that could not be asked when last tried. */
  readonly unavailable: readonly string[];
  /**
   * This machine's wall clock less the run store's, as far as it is sure: the time that the store's answer may have been
   * on its way is taken off. `undefined` before the store was asked, and after a jump of this machine's clocks until it
   * is asked again.
   */
  readonly skewMs: number | undefined;
  /** Announcements of this node that failed in a row. From the third on the others count it as gone. */
  readonly missedHeartbeats: number;
  /**
   * Whether the node begins occurrences by itself. Not while its clock is five minutes off or the others count it as
   * gone; it goes on by itself when that is over.
   */
  readonly plans: boolean;
}
