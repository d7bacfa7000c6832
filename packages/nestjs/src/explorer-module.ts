/** The part of the module that is there once per application: exploration, start and end, report and health. */
import { Global, Module } from '@nestjs/common';
import { DiscoveryModule } from '@nestjs/core';
import { GuardExplorer } from './explorer.js';
import { GuardHealthIndicator } from './health.js';
import { GuardReport } from './report.js';

/** Global, so that its hooks come first when the application comes up and last when it goes. */
@Global()
@Module({
  imports: [DiscoveryModule],
  providers: [GuardExplorer, GuardReport, GuardHealthIndicator],
  exports: [GuardExplorer, GuardReport, GuardHealthIndicator],
})
export class GuardExplorerModule {}
