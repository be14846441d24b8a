# Rscript --vanilla mgcv.R folder
# Fits the call of calls.txt to train.csv; of several calls the one with the smallest error on the rows
# of held_out.txt. Writes predicted.csv for test.csv and prints figures as JSON.
folder <- commandArgs(trailingOnly = TRUE)[1]
suppressPackageStartupMessages(library(mgcv))

path <- function(name) file.path(folder, name)
peak <- function() {
  if (!file.exists("/proc/self/status")) return(sum(gc()[, 6]))
  line <- grep("^VmHWM", readLines("/proc/self/status"), value = TRUE)
  as.numeric(gsub("[^0-9]", "", line)) / 1024
}
processor <- function() sum(proc.time()[c("user.self", "sys.self")])
elapsed <- function() proc.time()[["elapsed"]]
fit <- function(call, rows) eval(parse(text = call), list(rows = rows))

train <- read.csv(path("train.csv"), stringsAsFactors = TRUE)
test <- read.csv(path("test.csv"), stringsAsFactors = TRUE)
for (name in names(train)) {
  if (is.factor(train[[name]])) test[[name]] <- factor(test[[name]], levels(train[[name]]))
}
held_out <- scan(path("held_out.txt"), quiet = TRUE)
calls <- readLines(path("calls.txt"))
heard <- 0

error <- function(call) tryCatch({
  model <- fit(call, train[-held_out, ])
  mean((predict(model, train[held_out, ]) - train$y[held_out])^2)
}, error = function(problem) {
  message("a candidate failed: ", conditionMessage(problem))
  Inf
})

imported <- peak()
start <- c(processor(), elapsed())
withCallingHandlers({
  choice <- if (length(calls) > 1) which.min(sapply(calls, error)) else 1
  model <- fit(calls[choice], train)
}, warning = function(problem) {
  heard <<- heard + 1
  message("warning: ", conditionMessage(problem))
  invokeRestart("muffleWarning")
})
fitted <- c(processor(), elapsed())
expected <- as.numeric(predict(model, test))
predicted <- c(processor(), elapsed())
most <- peak()
uncertain <- as.numeric(predict(model, test, se.fit = TRUE)$se.fit)
spread <- sqrt(uncertain^2 + model$sig2)
write.csv(data.frame(mean = expected, spread = spread), path("predicted.csv"), row.names = FALSE)
cat(sprintf(paste0('{"choice": %d, "fit": %.3f, "fit_wall": %.3f, "predict": %.3f, "predict_wall": %.3f, ',
                   '"peak": %.1f, "grown": %.1f, "warnings": %d, "version": "%s"}\n'),
  choice, fitted[1] - start[1], fitted[2] - start[2], predicted[1] - fitted[1], predicted[2] - fitted[2],
  most, most - imported, heard, as.character(packageVersion("mgcv"))))
